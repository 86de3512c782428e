package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const (
	// belowNote says that there are copies below what is mounted at kubelet's directory.
	belowNote = paths.StateDir + "/kubelet-below-temp-disk"
	// belowDir is where they can be reached: the parent of kubelet's directory is mounted
	// there without what is mounted in it.
	belowDir = paths.RunDir + "/below-temp-disk"
)

// OffTempDisk gives kubelet's directory back to the disk of the system, with what the
// temporary disk holds of it. Where a pod or kubelet uses it, it stays mounted until the
// next boot, and what kubelet needs then is copied: all that nothing is mounted in. It says
// so. On a machine that goes down all stays as it is. Killed anywhere, nothing is lost.
func OffTempDisk(ctx context.Context, h host.Host) (said string, err error) {
	if goesDown(ctx, h) {
		return "", nil
	}
	if on, err := isOnTempDisk(ctx, h); err != nil || !on {
		return "", err
	}
	if said, err = offTempDisk(ctx, h); err == nil {
		return said, nil
	}
	return "", &exitcode.Error{Number: exitcode.Kubelet, During: "take kubelet's data off the temporary disk", Err: err,
		Remedy: "Look at the room on the disk of " + tempdisk.Target + ". Until the next boot the data are on " + tempdisk.Disk + "."}
}

func offTempDisk(ctx context.Context, h host.Host) (said string, err error) {
	user, busy, err := usersOf(ctx, h)
	if err != nil {
		return "", err
	}
	if err := copyBelow(ctx, h, busy); err != nil {
		return "", err
	}
	if user == "" {
		err := h.Unmount(ctx, tempdisk.Target)
		if err == nil {
			return "", clearTempDisk(ctx, h)
		}
		if !errors.Is(err, syscall.EBUSY) {
			return "", fmt.Errorf("unmount %s: %w", tempdisk.Target, err)
		}
		user = "a process"
	}
	return user + " uses " + tempdisk.Target + ", which stays on the temporary disk until the next boot", nil
}

// goesDown says whether systemd is stopping everything.
func goesDown(ctx context.Context, h host.Runner) bool {
	out, err := h.Run(ctx, host.Command{Path: "systemctl", Args: []string{"is-system-running"}})
	if e, ok := errors.AsType[*host.ExitError](err); ok { // it has one for each state but "running"
		out = e.Output
	}
	return strings.TrimSpace(string(out.Stdout)) == "stopping"
}

func isOnTempDisk(ctx context.Context, h host.Mounter) (bool, error) {
	disk, err := mountedAt(ctx, h, tempdisk.Disk)
	if err != nil || disk == "" {
		return false, err
	}
	have, err := mountedAt(ctx, h, tempdisk.Target)
	return have == disk, err
}

// usersOf says who uses kubelet's directory, "" for nobody, and in which names of it
// something is mounted.
func usersOf(ctx context.Context, h host.Host) (user string, busy []string, err error) {
	all, err := h.Mounts(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("list mounts: %w", err)
	}
	for _, m := range all {
		if rest, inside := strings.CutPrefix(m.Target, tempdisk.Target+"/"); inside {
			name, _, _ := strings.Cut(rest, "/")
			user, busy = "what is mounted at "+m.Target, append(busy, name)
		}
	}
	u, err := h.Unit(ctx, kubelet.Unit)
	if err != nil {
		return "", nil, fmt.Errorf("look at %s: %w", kubelet.Unit, err)
	}
	if u.ActiveState != "inactive" && u.ActiveState != "failed" {
		user = kubelet.Unit
	}
	return user, busy, nil
}

// copyBelow copies what the disk holds to the disk of the system, but for some names.
func copyBelow(ctx context.Context, h host.Host, but []string) error {
	names, err := h.ReadDir(tempdisk.Dir)
	if err != nil {
		return fmt.Errorf("look at the temporary disk: %w", err)
	}
	args := []string{"--archive", "--one-file-system", "--"}
	for _, name := range names {
		if !slices.Contains(but, name) {
			args = append(args, path.Join(tempdisk.Dir, name))
		}
	}
	if len(args) == 3 {
		return nil
	}
	if err := note(h, belowNote, tempdisk.Target); err != nil {
		return err
	}
	return below(ctx, h, func(dir string) error {
		if err := runs(ctx, h, "cp", append(args, dir)...); err != nil {
			return err
		}
		return runs(ctx, h, "sync", "--file-system", dir)
	})
}

// dropBelow takes away what copyBelow has copied, where the disk is used on.
func dropBelow(ctx context.Context, h host.Host) error {
	if !there(h, belowNote) {
		return nil
	}
	if err := below(ctx, h, func(dir string) error { return emptied(ctx, h, dir) }); err != nil {
		return err
	}
	return ledger.RemoveIfThere(h, belowNote)
}

// below shows kubelet's directory as the disk of the system has it.
func below(ctx context.Context, h host.Host, do func(dir string) error) (err error) {
	if err := unmountBelow(ctx, h); err != nil {
		return err
	}
	if _, err := host.MkdirAll(h, belowDir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmountBelow(context.WithoutCancel(ctx), h)) }()
	if err := runs(ctx, h, "mount", "--bind", "--make-private", path.Dir(tempdisk.Target), belowDir); err != nil {
		return err
	}
	return do(path.Join(belowDir, path.Base(tempdisk.Target)))
}

// unmountBelow also takes away what a call that was killed has left.
func unmountBelow(ctx context.Context, h host.Host) error {
	mounted, err := mountedAt(ctx, h, belowDir)
	if err != nil {
		return err
	}
	if mounted != "" {
		if err := h.Unmount(ctx, belowDir); err != nil {
			return fmt.Errorf("unmount %s: %w", belowDir, err)
		}
	}
	return ledger.RemoveIfThere(h, belowDir)
}

// clearTempDisk removes what is on the disk, now that the disk of the system has it.
func clearTempDisk(ctx context.Context, h host.Host) error {
	if err := runs(ctx, h, "rm", "--recursive", "--force", "--one-file-system", tempdisk.Dir); err != nil {
		return err
	}
	if err := ledger.RemoveIfThere(h, path.Dir(tempdisk.Dir)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return errors.Join(ledger.RemoveIfThere(h, tempDiskNote), ledger.RemoveIfThere(h, belowNote))
}
