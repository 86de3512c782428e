package machine

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// A lock that is held is asked for again after lockFirst, then ever later up to
// lockLast: the kernel has no event for it that could be given up.
const (
	lockFirst = time.Millisecond
	lockLast  = 100 * time.Millisecond
)

// errHeld is a lock that another holds.
var errHeld = errors.New("held")

// Lock implements host.Locker.
func (t tree) Lock(ctx context.Context, p, holder string) (func() error, error) {
	for pause := lockFirst; ; pause = min(2*pause, lockLast) {
		f, err := t.tryLock(p)
		if err == nil {
			label(f, holder)
			return f.Close, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, &host.LockedError{Path: p, Holder: t.holder(p)}
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// tryLock opens and locks the file. A file that was removed before it was locked
// keeps nobody out, and is tried again.
func (t tree) tryLock(p string) (*os.File, error) {
	for {
		f, err := t.openLock(p)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err == nil && st.Nlink > 0 {
			return f, nil
		}
		_ = f.Close()
	}
}

func (t tree) openLock(p string) (f *os.File, err error) {
	err = t.at("open", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), p)
		return nil
	})
	return f, err
}

func lock(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	if err != nil {
		return pathError("lock", f.Name(), err)
	}
	return nil
}

// label writes who holds the lock. Where /run is full it is held all the same, by
// another process as far as others can tell.
func label(f *os.File, holder string) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(holder+"\n"), 0)
	}
}

func (t tree) holder(p string) string {
	text, err := t.ReadFile(p)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return "another process"
	}
	return string(text)
}
