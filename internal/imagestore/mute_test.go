package imagestore

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// mute makes a containerd that never answers one kind of call.
func mute(t *testing.T, f *fake, call string) {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	f.failing(func(what string) error {
		if what == call {
			<-over
		}
		return nil
	})
}

// gone says that an error is the one of a containerd that is away, and came soon.
func gone(t *testing.T, err error, since time.Time) {
	t.Helper()
	if _, ok := errors.AsType[*NotRunningError](err); !ok || time.Since(since) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(since), err)
	}
}

// TestNobodyAccepts has the socket of a containerd that is stopped: connections
// are made, and nothing ever comes.
func TestNobodyAccepts(t *testing.T) {
	f := newFake(t)
	must(os.MkdirAll(filepath.Dir(f.socket), 0o700))
	l, err := net.Listen("unix", f.socket)
	must(err)
	defer l.Close()
	start := time.Now()
	_, _, err = (&Store{own: settings{socket: f.socket}}).Has(t.Context(), single("registry.test/a:1", 1, 10).Image)
	gone(t, err, start)
	s := &Store{own: settings{socket: f.socket, patience: 200 * time.Millisecond}}
	start = time.Now()
	gone(t, s.Import(t.Context(), single("registry.test/a:1", 1, 10).Image), start)
}

// TestMute: whichever call is not answered, neither Has nor Import wait for ever.
func TestMute(t *testing.T) {
	for _, call := range []string{"Get", "Info", "Read"} {
		f := startFake(t)
		img := single("registry.test/a:1", 1, 10)
		s := &Store{own: settings{socket: f.socket, patience: 200 * time.Millisecond, answer: 100 * time.Millisecond}}
		if err := (&Store{own: settings{socket: f.socket}}).Import(t.Context(), img.Image); err != nil {
			t.Fatal(err)
		}
		mute(t, f, call)
		start := time.Now()
		_, _, err := s.Has(t.Context(), img.Image)
		gone(t, err, start)
	}
	for _, call := range []string{"List", "Create", "STAT", "WRITE", "COMMIT", "Delete"} {
		f := startFake(t)
		mute(t, f, call)
		s := &Store{own: settings{socket: f.socket, patience: 200 * time.Millisecond, answer: 100 * time.Millisecond}}
		start := time.Now()
		gone(t, s.Import(t.Context(), single("registry.test/a:1", 1, 3<<20).Image), start)
	}
	if got := usual.hasty(); got.answer != glance || got.patience != glance {
		t.Errorf("%+v", got)
	}
}

// TestSlowSource: patience is for containerd, not for what is imported.
func TestSlowSource(t *testing.T) {
	var err error
	// A fake on a busy machine may itself be slower than little patience allows.
	for _, patience := range []time.Duration{500 * time.Millisecond, 5 * time.Second, 20 * time.Second} {
		f := startFake(t)
		img := dawdle(single("registry.test/a:1", 1, 2<<20), patience+patience/3)
		if err = (&Store{own: settings{socket: f.socket, patience: patience}}).Import(t.Context(), img.Image); err == nil {
			checkWhole(t, f, img)
			return
		}
	}
	t.Fatal(err)
}

// dawdle makes an image's first layer rest before each read.
func dawdle(img *sample, pause time.Duration) *sample {
	img.Source = opener(func(digest string) (io.ReadCloser, error) {
		in, err := img.open(digest)
		if digest != img.layers[0] {
			return in, err
		}
		return dawdling{in, pause}, err
	})
	return img
}

// dawdling rests before each read.
type dawdling struct {
	io.ReadCloser
	pause time.Duration
}

func (d dawdling) Read(p []byte) (int, error) {
	time.Sleep(d.pause)
	return d.ReadCloser.Read(p)
}
