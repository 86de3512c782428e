package machine

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/unitname"
)

// unusedAfter bounds the wait for systemd to see that a swap area is out of use. It sees
// nothing while it reads its definitions anew, which takes seconds on a slow machine.
const unusedAfter = time.Minute

// swapOff takes the area of a unit that is in use out of use, and waits until systemd has seen
// that. Of a masked unit systemd has forgotten the area as soon as it reads its definitions
// anew, whoever has it do so, and calls swapoff(8) without it: bad usage (seen with 252). The
// units of all names of an area end when it is in /proc/swaps no more, masked or not.
func (m *manager) swapOff(ctx context.Context, name string) error {
	area, ok := unitname.Path(name)
	if !ok {
		return nil
	}
	if st, err := m.Unit(ctx, name); err != nil || st.ActiveState != "active" {
		return nil //nolint:nilerr // the job says what is wrong
	}
	ctx, cancel := bounded(ctx, jobBound)
	defer cancel()
	switch err := swapoff(ctx, area); {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil // no area that is in use has this path: the job decides
	case err != nil:
		return fmt.Errorf("take the swap area %s out of use: %w", area, err)
	}
	m.awaitUnused(ctx, name)
	return nil
}

// swapoff is swapoff(2), which lasts until all that is swapped out is in memory again. It goes
// on when the context ends, and ends with the process.
func swapoff(ctx context.Context, area string) error {
	p, err := unix.BytePtrFromString(area)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		errno := unix.EINTR
		for errno == unix.EINTR && ctx.Err() == nil {
			_, _, errno = unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(p)), 0, 0)
		}
		if errno != 0 {
			done <- errno
			return
		}
		done <- nil
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return endOf(ctx)
	}
}

// awaitUnused waits until systemd has read from /proc/swaps that an area is out of use.
func (m *manager) awaitUnused(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, unusedAfter)
	defer cancel()
	for pause := reconnectPause; ; pause = min(2*pause, lockLast) {
		if st, err := m.Unit(ctx, name); err != nil || st.ActiveState != "active" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
