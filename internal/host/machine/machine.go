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
}

var (
	_ host.Host     = (*Host)(nil)
	_ host.Appender = (*Host)(nil)
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
		return &Host{tree{fd, false}, absent{}, refusing{}}, nil
	}
	return &Host{tree{fd, true}, &manager{}, processes{}}, nil
}

// Now implements host.Clock.
func (*Host) Now() time.Time { return time.Now() }

// refusing is the runner of another root.
type refusing struct{}

// Run implements host.Runner.
func (refusing) Run(_ context.Context, c host.Command) (host.Output, error) {
	return host.Output{}, pathError("fork/exec", c.Path, host.ErrOtherRoot)
}
