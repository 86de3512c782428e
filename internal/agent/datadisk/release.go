package datadisk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// Release unmounts the file system with the label from Dir, with what is mounted in
// it, where Ensure has mounted it; what is on it stays. It returns its device; "" where
// another or none is there. What a kubelet that is not down has there stays: the error
// is a *RunningError.
func Release(ctx context.Context, h host.Host) (device string, err error) {
	if mounted, err := Mounted(h); err != nil || !mounted {
		return "", err
	}
	if device, err = unmount(ctx, h); err != nil {
		return device, err
	}
	return device, forget(h, mountedPath)
}

// Mounted says whether Ensure has mounted a disk that was not released since.
func Mounted(h host.FS) (bool, error) {
	info, err := ledger.Lstat(h, mountedPath)
	return info != nil, err
}

func unmount(ctx context.Context, h host.Host) (device string, err error) {
	mounted, err := isMounted(ctx, h, Dir)
	if err != nil || mounted == "" {
		return "", err
	}
	if device, err = labelled(ctx, h); err != nil || device != mounted {
		return "", err
	}
	if err := kubeletIsDown(ctx, h); err != nil {
		return device, err
	}
	inside, err := inside(ctx, h)
	if err != nil {
		return "", err
	}
	for _, at := range append(inside, Dir) {
		if err := h.Unmount(ctx, at); err != nil {
			return device, fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	return device, nil
}

// inside are the mounts below Dir, the deepest first.
func inside(ctx context.Context, h host.Host) ([]string, error) {
	all, err := h.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var out []string
	for _, m := range all {
		if strings.HasPrefix(m.Target, Dir+"/") {
			out = append(out, m.Target)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}

// kubeletIsDown is a *RunningError unless it is: one that starts, stops or is
// about to be started again may have its data open, too.
func kubeletIsDown(ctx context.Context, h host.Host) error {
	u, err := h.Unit(ctx, kubelet.Unit)
	if err != nil {
		return fmt.Errorf("look at %s: %w", kubelet.Unit, err)
	}
	if u.ActiveState != "inactive" && u.ActiveState != "failed" {
		return &RunningError{}
	}
	return nil
}
