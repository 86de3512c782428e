package converge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// newTrustingMachine has a command that rebuilds the bundle as Debian's does: it
// renames a new one into place and leaves durability to the kernel.
func newTrustingMachine() *machine {
	h := newMachine()
	dir := "/usr/local/share/ca-certificates"
	h.PutDir(dir)
	h.Put(caBundle, "", 0o644)
	h.Reads("containerd.service", caBundle)
	h.Program("/usr/sbin/update-ca-certificates", func(host.Command) host.Output {
		var bundle strings.Builder
		names, _ := h.ReadDir(dir)
		for _, n := range names {
			data, _ := h.ReadFile(dir + "/" + n)
			bundle.Write(data)
		}
		f, err := h.Create(caBundle + ".new")
		must(err)
		_, err = f.Write([]byte(bundle.String()))
		must(err)
		must(f.Chmod(0o644))
		must(f.Close())
		must(h.Rename(caBundle+".new", caBundle))
		return host.Output{}
	})
	return h
}

func trustingState(t *testing.T, a *desired.TrustAnchor) *desired.State {
	t.Helper()
	return sampleState(t, func(s *desired.State) {
		s.Add(a)
		for _, r := range s.Resources {
			if u, ok := r.(*desired.Unit); ok && u.Name == "containerd.service" {
				u.After = append(u.After, a.ID())
			}
		}
	})
}

// The certificate is still in the bundle when the power goes right after a run,
// also one that found the bundle as another left it that was cut off.
func TestBundleIsDurable(t *testing.T) {
	a := anchor(t, "one")
	counting := effect.Inject(newTrustingMachine(), nil)
	if _, err := engine(counting, &providers{}).Apply(t.Context(), trustingState(t, a)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= counting.Count(); n++ {
		h := newTrustingMachine()
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), trustingState(t, a))
		h.Kill()
		if _, err := engine(h, &providers{}).Apply(t.Context(), trustingState(t, a)); err != nil {
			t.Fatal(err)
		}
		h.PowerCut(memory.LoseAll)
		h.Boot()
		if got, _ := h.ReadFile(caBundle); string(got) != a.PEM {
			t.Fatalf("killed at effect %d: the bundle is %q", n, got)
		}
	}
}

// A unit that started with a bundle that lacks a certificate starts again when
// the bundle has it, though the certificate's own file is older than the start.
func TestUnitRestartsForItsBundle(t *testing.T) {
	a := anchor(t, "one")
	h := newTrustingMachine()
	if _, err := engine(h, &providers{}).Apply(t.Context(), trustingState(t, a)); err != nil {
		t.Fatal(err)
	}
	h.Put(caBundle, "", 0o644)
	h.Boot()
	h.ForgetJobs()
	if _, err := engine(h, &providers{}).Apply(t.Context(), trustingState(t, a)); err != nil {
		t.Fatal(err)
	}
	if got := joinJobs(h); got != "restart containerd.service\n" {
		t.Fatalf("jobs %q", got)
	}
	if got := h.Jobs()[0].Reads[caBundle]; got != a.PEM {
		t.Fatalf("it runs with %q", got)
	}
}

// Debian's command makes a link for each anchor, and takes away those of anchors that are
// gone only where another comes or where it is told to begin anew.
func TestRemovedAnchorLeavesNoLink(t *testing.T) {
	const dir, links = "/usr/local/share/ca-certificates/", "/etc/ssl/certs/"
	h := newTrustingMachine()
	h.Program("/usr/sbin/update-ca-certificates", func(c host.Command) host.Output {
		var bundle strings.Builder
		added := slices.Contains(c.Args, "--fresh")
		for _, name := range []string{"one", "two"} {
			data, err := h.ReadFile(dir + name + ".crt")
			if _, there := h.Readlink(links + name + ".pem"); err == nil && there != nil {
				must(h.Symlink(dir+name+".crt", links+name+".pem"))
				added = true
			}
			bundle.Write(data)
		}
		for _, name := range []string{"one", "two"} {
			if _, err := h.Lstat(dir + name + ".crt"); err != nil && added {
				_ = h.Remove(links + name + ".pem")
			}
		}
		h.Put(caBundle, bundle.String(), 0o644)
		return host.Output{}
	})
	one, two := anchor(t, "one"), anchor(t, "two")
	for _, want := range [][]desired.Resource{{one}, {two}, {two, one}, {one}, nil} {
		runs(t, h, sealed(t, want...))
		names, err := h.ReadDir(strings.TrimSuffix(links, "/"))
		if must(err); len(names) != 1+len(want) {
			t.Errorf("with %d anchors there are %v", len(want), names)
		}
	}
}

// An anchor that takes the place of another one leaves nothing of that in the bundle, also
// where the bundle has the new one already, and wherever the run is cut off.
func TestReplacedAnchorIsDistrusted(t *testing.T) {
	one, two := anchor(t, "one"), anchor(t, "two")
	both := func(proxy *desired.TrustAnchor) *desired.State {
		return sealed(t, &desired.TrustAnchor{Name: "proxy", PEM: proxy.PEM}, &desired.TrustAnchor{Name: "custom", PEM: two.PEM})
	}
	before := func() *machine {
		h := newTrustingMachine()
		runs(t, h, both(one))
		return h
	}
	check := func(h *machine, when any) {
		t.Helper()
		runs(t, h, both(two))
		if got, _ := h.ReadFile(caBundle); strings.Contains(string(got), one.PEM) || !strings.Contains(string(got), two.PEM) {
			t.Errorf("%v: the bundle has the former anchor: %q", when, got)
		}
		converged(t, h, both(two))
	}
	check(before(), "undisturbed")
	for n, hit := 1, true; hit; n += stride {
		h := before()
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), both(two))
		hit = in.Hit() != nil
		h.Kill()
		if n%2 == 0 { // what another owner's run completes in between is no bundle
			other := &desired.State{Owner: desired.OwnerOSC}
			other.Add(managed("/etc/other", "1"))
			must(other.Seal())
			runs(t, h, other)
		}
		check(h, n)
	}
}

// An image build can make no bundle: the first boot does where the build replaced an anchor, or
// took one away, also where the bundle has all that is wanted, and makes none in vain.
func TestFirstBootDistrustsWhatTheImageHad(t *testing.T) {
	one, two := anchor(t, "one"), anchor(t, "two")
	state := func(anchors ...*desired.TrustAnchor) *desired.State {
		all := []desired.Resource{&desired.TrustAnchor{Name: "custom", PEM: two.PEM}}
		for _, a := range anchors {
			all = append(all, &desired.TrustAnchor{Name: "proxy", PEM: a.PEM})
		}
		return sealed(t, all...)
	}
	build := func(h *machine, st *desired.State) {
		t.Helper()
		e := converge.New(converge.Options{Host: h, Offline: true})
		for range 2 {
			if res, err := e.Apply(t.Context(), st); err != nil || len(res.Plan.Deferred) == 0 {
				t.Errorf("%v, postponed: %v", err, res.Plan.Deferred)
			}
		}
	}
	for name, tc := range map[string]struct {
		before func(h *machine)
		want   *desired.State
	}{
		"replaced of another": {func(h *machine) {
			h.Put("/usr/local/share/ca-certificates/proxy.crt", one.PEM, 0o644)
			h.Put(caBundle, one.PEM+two.PEM, 0o644)
		}, state(two)},
		"replaced": {func(h *machine) { runs(t, h, state(one)) }, state(two)},
		"gone":     {func(h *machine) { runs(t, h, state(one)) }, state()},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTrustingMachine()
			tc.before(h)
			build(h, tc.want)
			runs(t, h, tc.want)
			if got, _ := h.ReadFile(caBundle); strings.Contains(string(got), one.PEM) || !strings.Contains(string(got), two.PEM) {
				t.Errorf("the bundle has the former anchor: %q", got)
			}
			converged(t, h, tc.want)
		})
	}
}
