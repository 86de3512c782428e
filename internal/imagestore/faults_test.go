package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Whichever call or message containerd dies at: it comes back, and the same
// Import goes on.
func TestRestartAtEachMessage(t *testing.T) {
	for k := int64(1); ; k++ {
		f, count := startFake(t), atomic.Int64{}
		restarted := make(chan struct{})
		f.failing(func(string) error {
			if count.Add(1) == k {
				go func() {
					defer close(restarted)
					f.stop()
					f.start()
				}()
				<-restarted
				return status.Error(codes.Unavailable, "stopping")
			}
			return nil
		})
		img := multi("registry.test/a:1", 7, 3<<20, 2<<20)
		s := &Store{own: settings{socket: f.socket}}
		if err := s.Import(within(t, time.Minute), img.Image); err != nil {
			t.Fatalf("died at message %d: %v", k, err)
		}
		wantHas(t, target{Store: s}, img.Image, "")
		checkWhole(t, f, img)
		if count.Load() < k {
			t.Logf("%d messages", k-1)
			return
		}
		if n := f.sent; n > img.size()+3<<20 {
			t.Errorf("died at message %d: %d bytes were sent for %d", k, n, img.size())
		}
	}
}

// Whichever message an import ends at: the name stands for nothing or for the
// whole image, and the next import goes on.
func TestEndAtEachMessage(t *testing.T) {
	for k := int64(1); ; k++ {
		f, count := startFake(t), atomic.Int64{}
		ctx, cancel := context.WithCancel(t.Context())
		f.failing(func(string) error {
			if count.Add(1) == k {
				cancel()
			}
			return nil
		})
		img := multi("registry.test/a:1", 7, 3<<20, 2<<20)
		s := &Store{own: settings{socket: f.socket}}
		err := s.Import(ctx, img.Image)
		f.failing(nil)
		if f.knows(img.Reference) {
			wantHas(t, target{Store: s}, img.Image, "")
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at message %d: %v", k, err)
		}
		f.mu.Lock()
		f.collect()
		f.mu.Unlock()
		if err := s.Import(within(t, time.Minute), img.Image); err != nil {
			t.Fatalf("after the end at message %d: %v", k, err)
		}
		checkWhole(t, f, img)
		cancel()
		if count.Load() < k {
			return
		}
	}
}

// checkWhole checks that nothing is left but the image, and that the garbage
// collection leaves all of it.
func checkWhole(t *testing.T, f *fake, img *sample) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.collect()
	if len(f.blobs) != len(img.blobs) || len(f.ingests) != 0 || len(f.held) != 0 || len(f.records) != 3 {
		t.Fatalf("%d blobs of %d, %d uploads, %d leases, %d names", len(f.blobs), len(img.blobs), len(f.ingests), len(f.held), len(f.records))
	}
	for name, r := range f.records {
		if r.Labels[managedKey] != managedValue || r.Target.Digest != img.Digest {
			t.Errorf("record %s is %v", name, r)
		}
	}
}

func TestContainerdGone(t *testing.T) {
	f := newFake(t)
	s := &Store{own: settings{socket: f.socket, patience: 100 * time.Millisecond}}
	img := single("registry.test/a:1", 1, 10)
	start := time.Now()
	_, _, err := s.Has(t.Context(), img.Image)
	gone, ok := errors.AsType[*NotRunningError](err)
	if !ok || gone.Waited != 0 || !errors.Is(err, fs.ErrNotExist) || time.Since(start) > 15*time.Second {
		t.Fatalf("has: %v after %s", err, time.Since(start))
	}
	for name, do := range map[string]func() error{
		"import": func() error { return s.Import(t.Context(), img.Image) },
	} {
		err := do()
		if gone, ok := errors.AsType[*NotRunningError](err); !ok || gone.Waited < 90*time.Millisecond || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.own.patience = 0
	if _, ok := errors.AsType[*NotRunningError](s.Import(ctx, img.Image)); !ok {
		t.Error("the deadline is not in force")
	}
}

// A containerd that dies for good ends an import after the store's patience.
func TestContainerdDies(t *testing.T) {
	f := startFake(t)
	f.failing(func(what string) error {
		if what == "WRITE" {
			go f.stop()
			return status.Error(codes.Unavailable, "stopping")
		}
		return nil
	})
	s := &Store{own: settings{socket: f.socket, patience: 200 * time.Millisecond}}
	err := s.Import(within(t, time.Minute), single("registry.test/a:1", 1, 10<<20).Image)
	if _, ok := errors.AsType[*NotRunningError](err); !ok {
		t.Fatalf("error %v", err)
	}
}

// The socket's appearance ends the wait, though its directory was not there.
func TestWaitsForSocket(t *testing.T) {
	var took, usual time.Duration
	for range 10 { // a busy machine may be late now and then, a client that waits a second always is
		took, usual = importAfterStart(t)
		if took < usual+400*time.Millisecond {
			return
		}
	}
	t.Errorf("imported %s after the start, and with no wait in %s", took, usual)
}

// importAfterStart is how long after containerd's start an import that waited ends,
// and how long one takes that need not wait.
func importAfterStart(t *testing.T) (took, usual time.Duration) {
	f := newFake(t)
	s := &Store{own: settings{socket: f.socket}}
	done := make(chan error, 1)
	img := single("registry.test/a:1", 1, 10)
	go func() { done <- s.Import(context.WithoutCancel(t.Context()), img.Image) }()
	time.Sleep(1500 * time.Millisecond) // by now a client with the library's pauses would wait a second
	start := time.Now()
	f.start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	took, start = time.Since(start), time.Now()
	if err := s.Import(t.Context(), single("registry.test/b:1", 2, 10).Image); err != nil {
		t.Fatal(err)
	}
	return took, time.Since(start)
}

func TestAnswers(t *testing.T) {
	full := status.Error(codes.Unknown, "write /var/lib/containerd/io.containerd.content.v1.content/ingest/x/data: no space left on device")
	for name, c := range map[string]struct {
		at  string
		err error
		is  func(error) bool
	}{
		"full disk":          {"WRITE", full, is[*NoSpaceError]},
		"full at the end":    {"COMMIT", full, is[*NoSpaceError]},
		"full metadata":      {"Create", full, is[*NoSpaceError]},
		"refused":            {"STAT", status.Error(codes.PermissionDenied, "no"), is[*Error]},
		"content is missing": {"Create", status.Error(codes.NotFound, "no such thing"), is[*Error]},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.failing(func(what string) error {
				if what == c.at {
					return c.err
				}
				return nil
			})
			s := &Store{own: settings{socket: f.socket}}
			img := single("registry.test/a:1", 1, 2<<20)
			if err := s.Import(within(t, time.Minute), img.Image); !c.is(err) {
				t.Fatalf("%T: %v", err, err)
			}
			f.failing(nil)
			wantHas(t, target{Store: s}, img.Image, "absent")
			if err := s.Import(within(t, time.Minute), img.Image); err != nil {
				t.Fatal(err)
			}
			checkWhole(t, f, img)
		})
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A lock that a dead connection left is waited for.
func TestLockedIngest(t *testing.T) {
	f := startFake(t)
	img := single("registry.test/a:1", 1, 100)
	ref := "berth-" + img.layers[0]
	f.locked[ref] = true
	time.AfterFunc(200*time.Millisecond, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.locked, ref)
	})
	if err := (&Store{own: settings{socket: f.socket}}).Import(within(t, time.Minute), img.Image); err != nil {
		t.Fatal(err)
	}
}

// What another has just committed is not sent twice, and leased.
func TestRace(t *testing.T) {
	f := startFake(t)
	img := single("registry.test/a:1", 1, 100)
	f.failing(func(what string) error {
		if what == "COMMIT" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.blobs[img.layers[0]] = &stored{img.blobs[img.layers[0]], map[string]string{}}
		}
		return nil
	})
	if err := (&Store{own: settings{socket: f.socket}}).Import(within(t, time.Minute), img.Image); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, f, img)
}

// A lease that is about to end is not relied upon.
func TestOldLease(t *testing.T) {
	f := startFake(t)
	img := single("registry.test/a:1", 1, 100)
	s := &Store{own: settings{socket: f.socket}}
	img.cut[img.layers[0]] = 10
	if err := s.Import(t.Context(), img.Image); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if err := s.Import(t.Context(), img.Image); !errors.Is(err, errCut) || len(f.held) != 1 {
		t.Fatalf("%v, %d leases", err, len(f.held))
	}
	for _, l := range f.held {
		l.Labels[expireLabel] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	}
	if err := s.Import(t.Context(), img.Image); !errors.Is(err, errCut) || len(f.held) != 2 {
		t.Fatalf("%v, %d leases", err, len(f.held))
	}
	clear(img.cut)
	if err := s.Import(t.Context(), img.Image); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, f, img)
}

// Layers that containerd discarded after unpacking are not missed.
func TestDiscardedLayers(t *testing.T) {
	f := startFake(t)
	img := single("registry.test/a:1", 1, 100)
	s := &Store{own: settings{socket: f.socket}}
	if err := s.Import(t.Context(), img.Image); err != nil {
		t.Fatal(err)
	}
	delete(f.blobs, img.layers[0])
	wantHas(t, target{Store: s}, img.Image, "blob")
	for _, b := range f.blobs {
		b.labels["containerd.io/gc.ref.snapshot.overlayfs"] = "sha256:1"
	}
	wantHas(t, target{Store: s}, img.Image, "")
}

func TestHints(t *testing.T) {
	for _, err := range []error{&NotRunningError{Err: syscall.ECONNREFUSED}, &NoSpaceError{Err: errors.New("x")}} {
		if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() == "" {
			t.Errorf("%T has no hint", err)
		}
		if fmt.Sprint(err) == "" || errors.Unwrap(err) == nil {
			t.Errorf("%T says nothing", err)
		}
	}
}
