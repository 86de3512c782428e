package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// short is a wait that must end by itself; soon is enough for what must happen.
const (
	short = 50 * time.Millisecond
	soon  = 10 * time.Second
)

var locks = []testCase{
	{"lock names its holder", lockHolder},
	{"lock waits", lockWaits},
	{"lock excludes", lockExcludes},
	{"lock needs its directory", lockErrors},
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func lockHolder(t *testing.T, h host.Host, dir string) {
	unlock, err := h.Lock(t.Context(), dir+"/lock", "the first, pid 1")
	must(t, err)
	if info := lstat(t, h, dir+"/lock"); info.Mode != 0o600 {
		t.Errorf("lock file is %+v", info)
	}
	_, err = h.Lock(within(t, short), dir+"/lock", "the second")
	var held *host.LockedError
	if !errors.As(err, &held) || held.Holder != "the first, pid 1" || held.Path != dir+"/lock" {
		t.Fatalf("second lock: %v", err)
	}
	must(t, unlock())
	unlock, err = h.Lock(within(t, soon), dir+"/lock", "short")
	must(t, err)
	_, err = h.Lock(within(t, short), dir+"/lock", "the third")
	if !errors.As(err, &held) || held.Holder != "short" {
		t.Errorf("third lock: %v", err)
	}
	must(t, unlock())
}

func lockWaits(t *testing.T, h host.Host, dir string) {
	unlock, err := h.Lock(t.Context(), dir+"/lock", "first")
	must(t, err)
	got := make(chan error)
	go func() {
		second, err := h.Lock(within(t, soon), dir+"/lock", "second")
		if err == nil {
			err = second()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the lock was given twice: %v", err)
	case <-time.After(short):
	}
	must(t, unlock())
	must(t, <-got)
}

func lockExcludes(t *testing.T, h host.Host, dir string) {
	var group sync.WaitGroup
	var inside, through atomic.Int32
	for range 8 {
		group.Go(func() {
			unlock, err := h.Lock(within(t, soon), dir+"/lock", "one of eight")
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d are inside", n)
			}
			time.Sleep(short / 10)
			inside.Add(-1)
			through.Add(1)
			if err := unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := through.Load(); n != 8 {
		t.Errorf("%d of 8 went through", n)
	}
}

func lockErrors(t *testing.T, h host.Host, dir string) {
	_, err := h.Lock(t.Context(), dir+"/none/lock", "x")
	want(t, "lock without directory", err, fs.ErrNotExist)
	put(t, h, dir+"/f", "")
	must(t, h.Symlink("f", dir+"/l"))
	if _, err := h.Lock(t.Context(), dir+"/l", "x"); err == nil {
		t.Error("a lock through a link")
	}
}
