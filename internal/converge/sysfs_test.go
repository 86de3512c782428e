package converge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/converge/kind/sysfs"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

const hugePages = "/sys/kernel/mm/transparent_hugepage/enabled"

// choosing is a machine whose kernel offers three words.
func choosing() *machine {
	h := newMachine()
	offersHugePages(h)
	return h
}

func offersHugePages(h *machine) {
	h.ValueFunc(hugePages, "[always] madvise never\n", func(_, written string) (string, error) {
		words := []string{"always", "madvise", "never"}
		at := slices.Index(words, strings.TrimSpace(written))
		if at < 0 {
			return "", syscall.EINVAL
		}
		words[at] = "[" + words[at] + "]"
		return strings.Join(words, " ") + "\n", nil
	})
}

func chosen(t *testing.T, what string, h *machine, want string) {
	t.Helper()
	if text, err := h.ReadFile(hugePages); err != nil || !strings.Contains(string(text), "["+want+"]") {
		t.Errorf("%s: %q, %v; want %s", what, text, err, want)
	}
}

func choice(value string) *desired.Sysfs { return &desired.Sysfs{Path: hugePages, Value: value} }

// A value is set, kept, changed, and given back as it was.
func TestSysfs(t *testing.T) {
	h := choosing()
	p := runs(t, h, sealed(t, choice("madvise")))
	if len(p.Actions) != 1 || p.Actions[0].Reason != "is always, want madvise" {
		t.Errorf("%+v", p.Actions)
	}
	chosen(t, "set", h, "madvise")
	converged(t, h, sealed(t, choice("madvise")))
	must(h.WriteValue(hugePages, []byte("always")))
	runs(t, h, sealed(t, choice("madvise")))
	chosen(t, "repaired", h, "madvise")
	runs(t, h, sealed(t, choice("never")))
	chosen(t, "changed", h, "never")
	runs(t, h, sealed(t))
	chosen(t, "withdrawn", h, "always")
	converged(t, h, sealed(t))
}

// A value that others changed since stays, and is named.
func TestSysfsChangedByOthers(t *testing.T) {
	h := choosing()
	runs(t, h, sealed(t, choice("madvise")))
	must(h.WriteValue(hugePages, []byte("never")))
	res, err := engine(h, &providers{}).Apply(t.Context(), sealed(t))
	if err != nil || !strings.Contains(fmt.Sprint(res.Plan.Kept), "it is never, and berth had set it to madvise") {
		t.Errorf("%v, kept %v", err, res.Plan.Kept)
	}
	chosen(t, "withdrawn", h, "never")
}

// What the kernel does not offer is refused before anything changes.
func TestSysfsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		machine *machine
		want    string
	}{
		"another word": {choosing(), "this kernel offers always, madvise, never"},
		"no such":      {newMachine(), "this kernel does not have it"},
	} {
		_, err := engine(c.machine, &providers{}).Apply(t.Context(), sealed(t, choice("defer"), managed("/etc/x", "x\n")))
		if e := (*sysfs.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := c.machine.Lstat("/etc/x"); err == nil {
			t.Errorf("%s: changed all the same", name)
		}
	}
	p, err := engineOffline(newMachine(), &providers{}).Plan(t.Context(), sealed(t, choice("defer")))
	if err != nil || !p.Empty() || len(p.Deferred) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A kill or an error at any effect of coming and going.
func TestSysfsFaultsAnywhere(t *testing.T) {
	steps := []*desired.State{sealed(t, choice("madvise")), sealed(t, choice("never")), sealed(t)}
	for _, kind := range []effect.Kind{effect.Fail, effect.StopBefore, effect.StopAfter} {
		for i, want := range []string{"madvise", "never", "always"} {
			for n, hit := 1, true; hit; n++ {
				h := choosing()
				for _, s := range steps[:i] {
					runs(t, h, s)
				}
				in := effect.Inject(h, effect.Plan{{At: n, Kind: kind, Err: syscall.EIO}})
				_, err := engine(in, &providers{}).Apply(t.Context(), steps[i])
				if hit = in.Hit() != nil; hit && err == nil && kind == effect.Fail {
					t.Fatalf("step %d, effect %d: nobody saw %v", i, n, in.Hit())
				}
				h.Kill()
				runs(t, h, steps[i])
				converged(t, h, steps[i])
				chosen(t, fmt.Sprintf("step %d, fault at %v", i, in.Hit()), h, want)
			}
		}
	}
}
