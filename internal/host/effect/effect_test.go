package effect

import (
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

var attributes = host.Attributes{Mode: 0o644}

func machine() *memory.Host {
	h := memory.New()
	h.Put("/usr/bin/x", "", 0o755)
	h.Put("/etc/systemd/system/x.service", "[Service]\nExecStart=/usr/bin/x\n", 0o644)
	h.Program("/usr/bin/x", func(host.Command) host.Output { return host.Output{} })
	h.Value("/proc/sys/vm/x", "1\n")
	h.PutDir("/mnt")
	return h
}

// everything has each kind of effect once, and readings between.
func everything(t *testing.T, h host.Host) error {
	t.Helper()
	ctx := t.Context()
	_, err := host.MkdirAll(h, "/srv/d")
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return host.WriteFile(h, "/srv/d/f", []byte("12345"), attributes) },
		func() error { return h.Chmod("/srv/d/f", 0o600) },
		func() error { return h.Chown("/srv/d/f", 1, 2) },
		func() error { return h.SetXattr("/srv/d/f", "user.x", []byte("y")) },
		func() error { return h.SyncFile("/srv/d/f") },
		func() error { return h.Symlink("f", "/srv/d/l") },
		func() error { return h.Remove("/srv/d/l") },
		func() error { return h.Link("/srv/d/f", "/srv/d/g") },
		func() error { return h.WriteValue("/proc/sys/vm/x", []byte("2\n")) },
		func() error {
			_, err := h.Run(ctx, host.Command{Path: "/usr/bin/x", Args: []string{"a", "b"}})
			return err
		},
		func() error { return h.Mount(ctx, host.Mount{Source: "x", Target: "/mnt", Type: "tmpfs"}) },
		func() error { return h.Unmount(ctx, "/mnt") },
		func() error { return h.DaemonReload(ctx) },
		func() error { return h.StartUnit(ctx, "x.service") },
		func() error { _, err := h.Unit(ctx, "x.service"); return err },
		func() error { return h.StopUnit(ctx, "x.service") },
		func() error { return h.ResetFailed(ctx, "x.service") },
		func() error { return h.RestartUnit(ctx, "x.service") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

var allLines = []string{
	"mkdir /srv/d (-rwxr-xr-x)", "sync /srv",
	"create /srv/d/.berth.f.new", "write /srv/d/.berth.f.new (5 bytes)", "chown /srv/d/.berth.f.new (0:0)",
	"chmod /srv/d/.berth.f.new (-rw-r--r--)", "sync /srv/d/.berth.f.new", "rename /srv/d/f (/srv/d/.berth.f.new)", "sync /srv/d",
	"chmod /srv/d/f (-rw-------)", "chown /srv/d/f (1:2)", "xattr /srv/d/f (user.x)", "sync /srv/d/f", "symlink /srv/d/l (f)", "remove /srv/d/l", "link /srv/d/g (/srv/d/f)",
	"value /proc/sys/vm/x (2)", "run /usr/bin/x (a b)", "mount /mnt (tmpfs)", "unmount /mnt",
	"daemon-reload", "start x.service", "stop x.service", "reset-failed x.service", "restart x.service",
}

func TestRecord(t *testing.T) {
	r := Record(machine())
	if err := everything(t, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(allLines, r.Lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Forget()
	err := r.Mkdir("/srv/d", 0o755)
	if diff := cmp.Diff([]string{"mkdir /srv/d (-rwxr-xr-x): mkdir /srv/d: file exists"}, r.Lines()); diff != "" || err == nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestCount(t *testing.T) {
	i := Inject(machine(), nil)
	if err := everything(t, i); err != nil {
		t.Fatal(err)
	}
	if i.Count() != len(allLines) || i.Hit() != nil {
		t.Errorf("%d effects, want %d; hit %v", i.Count(), len(allLines), i.Hit())
	}
}

// TestStop stops at every effect: what was done before it is done, and with
// StopAfter it too, but nothing later.
func TestStop(t *testing.T) {
	for n := 1; n <= len(allLines); n++ {
		for kind, done := range map[Kind]int{StopBefore: n - 1, StopAfter: n} {
			inner := Record(machine())
			i := Inject(inner, Plan{{At: n, Kind: kind}})
			if err := everything(t, i); !errors.Is(err, ErrStopped) {
				t.Fatalf("stopped at %d: %v", n, err)
			}
			if diff := cmp.Diff(allLines[:done], append([]string{}, inner.Lines()...)); diff != "" {
				t.Errorf("stopped at %d:\n%s", n, diff)
			}
			if _, err := i.Lstat("/"); !errors.Is(err, ErrStopped) {
				t.Errorf("a stopped process reads: %v", err)
			}
			if _, err := i.Lock(t.Context(), "/run/l", "x"); !errors.Is(err, ErrStopped) {
				t.Errorf("a stopped process locks: %v", err)
			}
			if _, err := i.Watch(t.Context(), host.Watched{Names: []string{"/srv/d"}}); !errors.Is(err, ErrStopped) {
				t.Errorf("a stopped process watches: %v", err)
			}
			if err := i.Sleep(t.Context(), 0); !errors.Is(err, ErrStopped) {
				t.Errorf("a stopped process sleeps: %v", err)
			}
			if i.Hit() == nil || i.Hit().N != n || i.Count() != n {
				t.Errorf("hit %v, count %d, want %d", i.Hit(), i.Count(), n)
			}
		}
	}
}

func TestFail(t *testing.T) {
	for n := 1; n <= len(allLines); n++ {
		inner := machine()
		i := Inject(inner, Plan{{At: n, Err: syscall.ENOSPC}})
		err := everything(t, i)
		var p *fs.PathError
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &p) {
			t.Errorf("fault at %d (%s): %v", n, allLines[n-1], err)
		}
		if _, err := inner.Lstat("/srv/d/.berth.f.new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("fault at %d leaves a temporary file", n)
		}
	}
}

func TestFailedWriteIsHalfDone(t *testing.T) {
	inner := machine()
	i := Inject(inner, Plan{{At: 2, Err: syscall.ENOSPC}})
	f, err := i.Create("/srv/f")
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Write([]byte("123456"))
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if b, _ := inner.ReadFile("/srv/f"); string(b) != "123" {
		t.Errorf("content %q", b)
	}
}

func TestTimes(t *testing.T) {
	for times, want := range map[int]int{0: 1, 1: 1, 3: 3, -1: 9} {
		i := Inject(machine(), Plan{{At: 2, Err: syscall.EIO, Times: times}})
		failed := 0
		for range 10 {
			if i.Chmod("/usr/bin/x", 0o755) != nil {
				failed++
			}
		}
		if failed != want {
			t.Errorf("times %d: %d failed, want %d", times, failed, want)
		}
	}
}

func TestNumbersAreGlobal(t *testing.T) {
	i := Inject(machine(), nil)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				_ = i.Chmod("/usr/bin/x", 0o755)
			}
		})
	}
	group.Wait()
	if i.Count() != 400 {
		t.Errorf("%d effects, want 400", i.Count())
	}
}

func TestAppendPasses(t *testing.T) {
	var h host.Host = Record(Inject(machine(), nil))
	w, err := h.(host.Appender).Append("/var/log/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("line")); err != nil {
		t.Fatal(err)
	}
}
