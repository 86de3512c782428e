// Package datadisk puts kubelet's data on a disk of their own: one that is told by
// its exact size alone, as cluster managers order it with the machine.
package datadisk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const (
	// Label is that of the file system; documents mount it by that name.
	Label = "KUBEDEV"
	// Dir is where it is mounted.
	Dir = "/var/lib/kubelet"

	fsType = "ext4"
	// staging is where the file system is filled before it has its label.
	staging = paths.StateDir + "/datadisk"
	// notePath names the disk whose making has begun: what is on it is berth's.
	// What is on the disk tells once it is complete.
	notePath = paths.StateDir + "/datadisk.begun"
	// mountedPath says that the agent has mounted a disk at Dir; it is there before the
	// mount is. What others mount is not the agent's to unmount.
	mountedPath = paths.StateDir + "/datadisk.mounted"
)

// options are the published ones: kubelet accounts for pods by project quota.
var options = []string{"defaults", "prjquota", "errors=remount-ro"}

// Ensure mounts the file system with the label at Dir. Where there is none it makes
// it on the one disk of size bytes that is empty, and takes along what Dir holds. It
// waits for a disk that is not there yet, until ctx ends. A disk on which
// anything is seen is never written to: the error is a *UsedError. What a running
// kubelet has in Dir is not covered: a *RunningError. Killed anywhere, the next call
// completes it.
func Ensure(ctx context.Context, h host.Host, size int64) error {
	mounted, err := isMounted(ctx, h, Dir)
	if err != nil || mounted != "" {
		return err
	}
	// One that is tried again and again, for it finds its data nowhere, gets them here.
	if u, err := h.Unit(ctx, kubelet.Unit); err != nil || u.ActiveState == "active" {
		return errors.Join(err, &RunningError{})
	}
	device, err := labelled(ctx, h)
	if err != nil {
		return err
	}
	if device == "" {
		if device, err = await(ctx, h, size); err != nil {
			return err
		}
		if err := create(ctx, h, device); err != nil {
			return fmt.Errorf("make %s the disk of %s: %w", device, Dir, err)
		}
	}
	if err := errors.Join(clean(ctx, h), forget(h, notePath)); err != nil {
		return err
	}
	if err := remember(h, mountedPath, device); err != nil {
		return err
	}
	return mount(ctx, h, device, Dir)
}

// RunningError is a kubelet that runs with its data on another disk.
type RunningError struct{}

// Error says so.
func (*RunningError) Error() string {
	return kubelet.Unit + " runs, and its data in " + Dir + " stay on the disk where they are"
}

// Hint says what to do.
func (*RunningError) Hint() string {
	return "Drain the node and stop " + kubelet.Unit + "; then start the agent again."
}

// isMounted is the device at a directory; "" for none.
func isMounted(ctx context.Context, h host.Host, dir string) (string, error) {
	all, err := h.Mounts(ctx)
	if err != nil {
		return "", fmt.Errorf("list mounts: %w", err)
	}
	device := ""
	for _, m := range all {
		if m.Target == dir {
			device = m.Source
		}
	}
	return device, nil
}

// labelled is the device with the file system; "" where there is none.
func labelled(ctx context.Context, h host.Host) (string, error) {
	out, err := h.Run(ctx, host.Command{Path: "blkid", Args: []string{"--cache-file", "/dev/null", "--output", "device", "--match-token", "LABEL=" + Label}})
	if isExit(err, nothingFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the file system %s: %w", Label, err)
	}
	devices := strings.Fields(string(out.Stdout))
	if len(devices) > 1 {
		return "", &ManyError{Devices: devices}
	}
	return strings.Join(devices, ""), nil
}

// nothingFound is blkid's exit code for that (blkid(8)).
const nothingFound = 2

func isExit(err error, code int) bool {
	e, ok := errors.AsType[*host.ExitError](err)
	return ok && e.Output.ExitCode == code
}

// create makes the file system, fills it, and labels it last: one that has the
// label is complete.
func create(ctx context.Context, h host.Host, device string) error {
	id := uuid.NewString()
	if err := remember(h, notePath, device+" "+id+" "+attachment(h, device)); err != nil {
		return err
	}
	if err := clean(ctx, h); err != nil {
		return err
	}
	if err := run(ctx, h, "mkfs.ext4", "-q", "-F", "-U", id, "-O", "quota", "-E", "quotatype=prjquota", device); err != nil {
		return err
	}
	if err := fill(ctx, h, device); err != nil {
		return err
	}
	return run(ctx, h, "e2label", device, Label)
}

// remember notes a device.
func remember(h host.FS, note, device string) error {
	if err := host.PrivateDir(h, paths.StateDir); err != nil {
		return err
	}
	return host.WriteFile(h, note, []byte(device+"\n"), host.Attributes{Mode: 0o600})
}

// forget takes a note away.
func forget(h host.FS, note string) error {
	info, err := ledger.Lstat(h, note)
	if err != nil || info == nil {
		return err
	}
	if err := h.Remove(note); err != nil {
		return err
	}
	return h.SyncDir(paths.StateDir)
}

// fill copies what the directory holds.
func fill(ctx context.Context, h host.Host, device string) error {
	info, err := ledger.Lstat(h, Dir)
	if err != nil || info == nil {
		return err
	}
	if err := host.PrivateDir(h, staging); err != nil {
		return err
	}
	if err := mount(ctx, h, device, staging); err != nil {
		return err
	}
	err = run(ctx, h, "cp", "--archive", "--one-file-system", Dir+"/.", staging)
	return errors.Join(err, clean(context.WithoutCancel(ctx), h))
}

// clean takes away what an earlier call may have left; unmounting makes durable what
// was copied.
func clean(ctx context.Context, h host.Host) error {
	mounted, err := isMounted(ctx, h, staging)
	if err != nil {
		return err
	}
	if mounted != "" {
		if err := h.Unmount(ctx, staging); err != nil {
			return fmt.Errorf("unmount %s: %w", staging, err)
		}
	}
	return ledger.RemoveIfThere(h, staging)
}

func mount(ctx context.Context, h host.Host, device, dir string) error {
	if _, err := host.MkdirAll(h, dir); err != nil {
		return err
	}
	if err := h.Mount(ctx, host.Mount{Source: device, Target: dir, Type: fsType, Options: options}); err != nil {
		return fmt.Errorf("mount %s at %s: %w", device, dir, err)
	}
	return nil
}

func run(ctx context.Context, h host.Host, program string, args ...string) error {
	if _, err := h.Run(ctx, host.Command{Path: program, Args: args}); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
