package converge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A mount comes, stays, and goes with what wanted it; what others mounted is not
// covered.
func TestMounts(t *testing.T) {
	state := func() *desired.State {
		return sealed(t, managed("/mnt/data.txt", "about\n"),
			&desired.Mount{Base: desired.Base{After: []desired.ID{desired.FileID("/mnt/data.txt")}}, Source: "tmpfs", Target: "/mnt/data", FSType: "tmpfs"})
	}
	h := newMachine()
	h.PutDir("/mnt/data")
	runs(t, h, state())
	converged(t, h, state())
	mounted := func(h *machine) int {
		all, err := h.Mounts(tctx)
		must(err)
		n := 0
		for _, m := range all {
			if m.Target == "/mnt/data" {
				n++
			}
		}
		return n
	}
	if n := mounted(h); n != 1 {
		t.Fatalf("%d mounts", n)
	}
	runs(t, h, sealed(t))
	if mounted(h) != 0 {
		t.Error("the mount is still there")
	}
	must(h.Mount(tctx, host.Mount{Source: "elsewhere", Target: "/mnt/data", Type: "tmpfs"}))
	p, err := engine(h, &providers{}).Plan(t.Context(), state())
	if err == nil || p == nil || len(p.Actions) == 0 || p.Actions[len(p.Actions)-1].Blocked == "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A directory that the state also wants at the target has its mode and owner where it is seen:
// at the root of what is mounted, from the first run on, and after each boot.
func TestMountOnADirectoryWithAMode(t *testing.T) {
	state := func(mode desired.Mode) *desired.State {
		d := &desired.Directory{Path: "/mnt/data", Mode: mode, UID: 7, GID: 8}
		return sealed(t, d, &desired.Mount{Base: desired.Base{After: []desired.ID{d.ID()}}, Source: "tmpfs", Target: "/mnt/data", FSType: "tmpfs"})
	}
	seen := func(h *machine) string {
		info, err := h.Lstat("/mnt/data")
		must(err)
		return fmt.Sprintf("%04o %d:%d", info.Mode.Perm(), info.UID, info.GID)
	}
	h := newMachine()
	before := others(h)
	for _, mode := range []desired.Mode{0o700, 0o751} {
		want := fmt.Sprintf("%04o 7:8", mode.Perm())
		for _, happens := range []func(){func() {}, h.Boot, func() { must(h.Unmount(tctx, "/mnt/data")) }} {
			happens()
			runs(t, h, state(mode))
			if is := seen(h); is != want || optionsOf(h) == nil {
				t.Errorf("it is %s, want %s; mounted with %q", is, want, optionsOf(h))
			}
			converged(t, h, state(mode))
		}
	}
	runs(t, h, sealed(t))
	if d := cmp.Diff(before, others(h)); d != "" {
		t.Error(d)
	}
}

// withOptions is a mount with options, on a directory of the state.
func withOptions(t *testing.T, options ...string) *desired.State {
	return sealed(t, &desired.Mount{Source: "tmpfs", Target: "/mnt/data", FSType: "tmpfs", Options: options})
}

// optionsOf are those of what is mounted on /mnt/data; nil where nothing is.
func optionsOf(h *memory.Host) []string {
	all, err := h.Mounts(tctx)
	must(err)
	var out []string
	for _, m := range all {
		if m.Target == "/mnt/data" {
			out = append(out, strings.Join(m.Options, ","))
		}
	}
	return out
}

// A mount has the options that are wanted, also where it had others: killed anywhere, it
// is mounted once, and goes when nobody wants it.
func TestMountOptions(t *testing.T) {
	machine := func() *memory.Host {
		h := newMachine()
		h.PutDir("/mnt/data")
		return h
	}
	before := others(machine())
	steps := []struct {
		s    *desired.State
		want []string
	}{
		{withOptions(t, "noexec", "size=1m"), []string{"rw,noexec,size=1m"}},
		{withOptions(t, "noexec", "size=2m"), []string{"rw,noexec,size=2m"}},
		{withOptions(t, "ro", "noexec", "size=2m"), []string{"ro,noexec,size=2m"}},
		{withOptions(t, "size=2048k"), []string{"rw,size=2048k"}},
		{sealed(t), nil},
	}
	for n, hit := 1, true; hit; n++ {
		h := machine()
		hit = false
		for _, step := range steps {
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_, _ = engine(in, &providers{}).Apply(t.Context(), step.s)
			hit = hit || in.Hit() != nil
			h.Kill()
			runs(t, h, step.s)
			converged(t, h, step.s)
			if d := cmp.Diff(step.want, optionsOf(h)); d != "" {
				t.Fatalf("killed at effect %d: %s", n, d)
			}
		}
		if d := cmp.Diff(before, others(h)); d != "" {
			t.Fatalf("killed at effect %d of each: %s", n, d)
		}
	}
}

// What somebody mounted with less than is wanted is repaired where it is berth's, and
// left alone where it is not.
func TestMountWithoutAnOption(t *testing.T) {
	h := newMachine()
	h.PutDir("/mnt/data")
	s := withOptions(t, "noexec")
	again := func() {
		must(h.Unmount(tctx, "/mnt/data"))
		must(h.Mount(tctx, host.Mount{Source: "tmpfs", Target: "/mnt/data", Type: "tmpfs"}))
	}
	runs(t, h, s)
	again()
	if d := cmp.Diff([]string{"unmount mount:/mnt/data", "mount mount:/mnt/data"}, verbs(runs(t, h, s))); d != "" {
		t.Error(d)
	}
	converged(t, h, s)
	runs(t, h, sealed(t))
	must(h.Mount(tctx, host.Mount{Source: "tmpfs", Target: "/mnt/data", Type: "tmpfs"}))
	p, err := engine(h, &providers{}).Plan(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "mounted without noexec") || p == nil || len(p.Actions) != 1 || p.Actions[0].Blocked == "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A directory of berth's goes together with the mount on it.
func TestMountedDirectoryGoes(t *testing.T) {
	h := newMachine()
	before := others(h)
	own := &desired.Directory{Path: "/mnt/data", Mode: 0o755}
	runs(t, h, sealed(t, own))
	runs(t, h, sealed(t, &desired.Mount{Source: "tmpfs", Target: "/mnt/data", FSType: "tmpfs"}, managed("/mnt/data.txt", "")))
	runs(t, h, sealed(t))
	converged(t, h, sealed(t))
	delete(before, "/mnt/data")
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}
