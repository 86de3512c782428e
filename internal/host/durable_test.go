package host_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

var attributes = host.Attributes{Mode: 0o640, UID: 1, GID: 2}

const (
	target = "/srv/a/b/f"
	newest = "-rw-r----- 1:2 new content"
	before = "-rw------- 0:0 old"
)

// write is a durable write with the directories it needs.
func write(h host.Host) error {
	if _, err := host.MkdirAll(h, "/srv/a/b"); err != nil {
		return err
	}
	return host.WriteFile(h, target, []byte("new content"), attributes)
}

// machines are what write may find.
var machines = map[string]func() *memory.Host{
	"nothing there": memory.New,
	"a file there": func() *memory.Host {
		h := memory.New()
		h.Put(target, "old", 0o600)
		return h
	},
	"a leftover there": func() *memory.Host {
		h := memory.New()
		h.Put(target, "old", 0o600)
		h.Put(host.TempName(target), "half", 0o600)
		return h
	},
}

// ends are what may happen to a machine on which a process has stopped.
func ends() map[string]func(*memory.Host) {
	out := map[string]func(*memory.Host){"killed": (*memory.Host).Kill}
	for seed := range uint64(20) {
		out["power cut "+string(rune('a'+seed))] = func(h *memory.Host) { h.PowerCut(seed); h.Boot() }
	}
	return out
}

// TestWriteIsWholeOrAbsent stops a durable write at each of its effects: the file
// is the old or the new one, and a further write makes it the new one and leaves
// nothing else.
func TestWriteIsWholeOrAbsent(t *testing.T) {
	points := 0
	for name, machine := range machines {
		count := effect.Inject(machine(), nil)
		if err := write(count); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= count.Count(); n++ {
			for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
				for how, end := range ends() {
					points++
					h := machine()
					if err := write(effect.Inject(h, effect.Plan{{At: n, Kind: kind}})); !errors.Is(err, effect.ErrStopped) {
						t.Fatalf("%s: stopped at %d: %v", name, n, err)
					}
					end(h)
					if got := h.Tree("/srv")[target]; got != newest && got != before && (got != "" || name != "nothing there") {
						t.Errorf("%s, stopped at %d, %s: %q", name, n, how, got)
					}
					again(t, h)
				}
			}
		}
	}
	t.Logf("%d points", points)
}

// again writes once more.
func again(t *testing.T, h *memory.Host) {
	t.Helper()
	if err := write(h); err != nil {
		t.Fatal(err)
	}
	tree := h.Tree("/srv")
	if len(tree) != 4 || tree[target] != newest {
		t.Errorf("in the end: %v", tree)
	}
}

// TestWriteFailsWhole makes each effect fail: the old file stays, no temporary
// one does.
func TestWriteFailsWhole(t *testing.T) {
	for name, machine := range machines {
		count := effect.Inject(machine(), nil)
		if err := write(count); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= count.Count(); n++ {
			for _, errno := range []error{syscall.ENOSPC, syscall.EIO, syscall.EPERM} {
				h := machine()
				i := effect.Inject(h, effect.Plan{{At: n, Err: errno}})
				if err := write(i); !errors.Is(err, errno) {
					t.Fatalf("%s: %v at %d: %v", name, errno, n, err)
				}
				tree := h.Tree("/srv")
				if got := tree[target]; got != newest && got != before && (got != "" || name != "nothing there") {
					t.Errorf("%s: %v at %s: %q", name, errno, i.Hit(), got)
				}
				left := tree[host.TempName(target)] != ""
				if left && (name != "a leftover there" || i.Hit().Op != "remove" && n != 1) {
					t.Errorf("%s: %v at %s leaves a temporary file", name, errno, i.Hit())
				}
				again(t, h)
			}
		}
	}
}

// TestWriteIsDurable takes the power away when a write has returned.
func TestWriteIsDurable(t *testing.T) {
	for name, machine := range machines {
		for seed := range uint64(50) {
			h := machine()
			if err := write(h); err != nil {
				t.Fatal(err)
			}
			h.PowerCut(seed)
			if tree := h.Tree("/srv"); len(tree) != 4 || tree[target] != newest {
				t.Errorf("%s, seed %d: %v", name, seed, tree)
			}
		}
	}
}

func TestMkdirAllOverFile(t *testing.T) {
	h := memory.New()
	h.Put("/srv/f", "", 0o600)
	var p *fs.PathError
	if _, err := host.MkdirAll(h, "/srv/f"); !errors.As(err, &p) {
		t.Errorf("error %v", err)
	}
}
