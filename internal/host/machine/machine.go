// Package machine is the real machine, or a root directory that is to become
// one.
//
// Every path is resolved by the kernel inside the root (openat2(2)), never
// through a link that is not allowed, and its last element is then used relative
// to the directory that was found: nothing that happens in between leads
// elsewhere.
package machine

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// Host is a machine. Use New.
type Host struct {
	tree
	host.Systemd
	host.Runner
	host.Mounter
	host.PacketFilter
}

var (
	_ host.Host      = (*Host)(nil)
	_ host.Appender  = (*Host)(nil)
	_ host.Describer = (*Host)(nil)
)

// New opens the machine whose root directory is root, an absolute path. Only
// with "/" there are a service manager, programs and kernel values; elsewhere
// the answers are host.ErrNoSystemd and host.ErrOtherRoot. Nothing of systemd is
// touched before its first use.
func New(root string) (host.Host, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root directory %s: %w", root, err)
	}
	if root != "/" {
		return &Host{tree{fd, false}, absent{}, refusing{}, refusing{}, refusing{}}, nil
	}
	live := tree{fd, true}
	run := processes{commandBound}
	return &Host{live, &manager{files: live}, run, mounts{live}, packetFilter{files: live, programs: run}}, nil
}

// Now implements host.Clock.
func (*Host) Now() time.Time { return time.Now() }

// Sleep implements host.Clock.
func (*Host) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusing is the runner, the mounts and the packet filter of another root.
type refusing struct{}

// Run implements host.Runner.
func (refusing) Run(_ context.Context, c host.Command) (host.Output, error) {
	return host.Output{}, pathError("fork/exec", c.Path, host.ErrOtherRoot)
}

// Mounts implements host.Mounter.
func (refusing) Mounts(context.Context) ([]host.Mount, error) { return nil, host.ErrOtherRoot }

// Mount implements host.Mounter.
func (refusing) Mount(_ context.Context, m host.Mount) error {
	return pathError("mount", m.Target, host.ErrOtherRoot)
}

// Unmount implements host.Mounter.
func (refusing) Unmount(_ context.Context, target string) error {
	return pathError("unmount", target, host.ErrOtherRoot)
}
