package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const (
	// tempDiskNote says that what is on the temporary disk is this system's: a system that
	// was put on the machine anew finds the data of the one before there.
	tempDiskNote = paths.StateDir + "/kubelet-on-temp-disk"
	// bootPatience is how long the disk is waited for at boot.
	bootPatience = time.Minute
	// betweenLooks is the pause between two looks at the mounts: the kernel tells of new
	// ones, but no file watch does.
	betweenLooks = 500 * time.Millisecond
)

// OnTempDisk mounts kubelet's directory from the temporary disk, and takes along what
// the directory holds. A disk that comes back empty gets what berth or others have written
// meanwhile. Killed anywhere, the next call completes it. What a running kubelet
// has there is not covered.
func OnTempDisk(ctx context.Context, h host.Host) error {
	err := onTempDisk(ctx, h)
	if err == nil || exitcode.Known(err) != 0 {
		return err
	}
	return &exitcode.Error{Number: exitcode.Kubelet, During: "put kubelet's data on the temporary disk", Err: err,
		Remedy: "Look at what is mounted at " + tempdisk.Target + " and at the room on " + tempdisk.Disk + "; then systemctl restart " + tempdisk.Unit + " " + kubelet.Unit + "."}
}

func onTempDisk(ctx context.Context, h host.Host) error {
	if err := awaitMount(ctx, h, tempdisk.Disk, bootPatience); err != nil {
		return err
	}
	disk, err := mountedAt(ctx, h, tempdisk.Disk)
	if err != nil {
		return err
	}
	have, err := mountedAt(ctx, h, tempdisk.Target)
	if err != nil {
		return err
	}
	switch {
	case have == disk:
		return errors.Join(dropBelow(ctx, h), noteTempDisk(h))
	case have != "":
		return fmt.Errorf("%s is mounted at %s already", have, tempdisk.Target)
	}
	if u, err := h.Unit(ctx, kubelet.Unit); err != nil || u.ActiveState == "active" {
		return errors.Join(err, runningError(u.ActiveState))
	}
	if err := takeAlong(ctx, h); err != nil {
		return err
	}
	return runs(ctx, h, "mount", "--bind", tempdisk.Dir, tempdisk.Target)
}

// runningError is a kubelet that must be stopped by somebody who has drained the node.
func runningError(state string) error {
	if state != "active" {
		return nil
	}
	return &exitcode.Error{
		Number: exitcode.Kubelet, During: "put kubelet's data on the temporary disk",
		Err:    errors.New(kubelet.Unit + " runs, and its data in " + tempdisk.Target + " stay on the disk where they are"),
		Remedy: "Drain the node and stop " + kubelet.Unit + "; then run it again. Without that, leave kubelet_disk_type as it was.",
	}
}

// takeAlong moves what the directory holds. Copies are durable before the note says that
// the disk's data count, and that before an original goes.
func takeAlong(ctx context.Context, h host.Host) error {
	if _, err := host.MkdirAll(h, tempdisk.Target); err != nil {
		return err
	}
	if !there(h, tempDiskNote) && !there(h, tempdisk.Sentinel) {
		if err := runs(ctx, h, "rm", "--recursive", "--force", "--one-file-system", tempdisk.Dir); err != nil {
			return err
		}
	}
	if _, err := host.MkdirAll(h, tempdisk.Dir); err != nil {
		return err
	}
	if err := runs(ctx, h, "cp", "--archive", "--one-file-system", tempdisk.Target+"/.", tempdisk.Dir); err != nil {
		return err
	}
	if err := runs(ctx, h, "sync", "--file-system", tempdisk.Dir); err != nil {
		return err
	}
	if err := noteTempDisk(h); err != nil {
		return err
	}
	if err := emptied(ctx, h, tempdisk.Target); err != nil {
		return err
	}
	return ledger.RemoveIfThere(h, belowNote)
}

func noteTempDisk(h host.FS) error { return note(h, tempDiskNote, tempdisk.Dir) }

func note(h host.FS, at, text string) error {
	if there(h, at) {
		return nil
	}
	if err := host.PrivateDir(h, paths.StateDir); err != nil {
		return err
	}
	return host.WriteFile(h, at, []byte(text+"\n"), host.Attributes{Mode: 0o600})
}

// emptied removes what is in a directory: nobody would see it below what is mounted
// there, and it holds keys.
func emptied(ctx context.Context, h host.Host, dir string) error {
	names, err := h.ReadDir(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	args := []string{"--recursive", "--force", "--one-file-system", "--"}
	for _, name := range names {
		args = append(args, path.Join(dir, name))
	}
	return runs(ctx, h, "rm", args...)
}

func runs(ctx context.Context, h host.Runner, program string, args ...string) error {
	_, err := h.Run(ctx, host.Command{Path: program, Args: args})
	return err
}

// mountedAt is the device of what is mounted at a directory; "" for nothing.
func mountedAt(ctx context.Context, h host.Mounter, dir string) (source string, err error) {
	all, err := h.Mounts(ctx)
	if err != nil {
		return "", fmt.Errorf("list mounts: %w", err)
	}
	for _, m := range all {
		if m.Target == dir {
			source = m.Source
		}
	}
	return source, nil
}

// awaitMount returns when a file system is mounted at a directory. The error is a
// *NoDiskError when patience is over.
func awaitMount(ctx context.Context, h host.Host, dir string, patience time.Duration) error {
	for start := h.Now(); ; {
		source, err := mountedAt(ctx, h, dir)
		if err != nil || source != "" {
			return err
		}
		waited := h.Now().Sub(start)
		if waited >= patience {
			return &NoDiskError{Dir: dir, Waited: waited}
		}
		if err := h.Sleep(ctx, min(betweenLooks, patience-waited)); err != nil {
			return fmt.Errorf("wait for a disk at %s: %w", dir, context.Cause(ctx))
		}
	}
}

// NoDiskError is a temporary disk that is not mounted.
type NoDiskError struct {
	Dir    string
	Waited time.Duration
}

// Error says how long it was waited for.
func (e *NoDiskError) Error() string {
	return fmt.Sprintf("no temporary disk: nothing is mounted at %s after %s", e.Dir, e.Waited.Round(time.Second))
}

// ExitCode is that of a kubelet that can't start.
func (e *NoDiskError) ExitCode() int { return exitcode.Kubelet }

// Hint says what to look at.
func (e *NoDiskError) Hint() string {
	return "Choose a size of virtual machine with a temporary disk that the image mounts at " + e.Dir + ", or leave kubelet_disk_type at the OS disk."
}
