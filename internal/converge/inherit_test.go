package converge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	formerUnit = "/etc/systemd/system/a.service"
	formerDrop = "/etc/systemd/system/containerd.service.d/10-a.conf"
	formerLink = "/etc/systemd/system/multi-user.target.wants/a.service"
)

// former is a machine as another program has left it, and what that had been asked
// for: a file, a program out of an image, a unit of its own, a drop-in.
func former(t *testing.T) (h *machine, rs []desired.Resource) {
	t.Helper()
	h = newMachine()
	h.Put("/etc/a", "a\n", 0o644)
	h.Put("/etc/edited", "edited\n", 0o644)
	h.Put("/opt/bin/tool", "tool", 0o755)
	h.Put(formerUnit, "[Service]\nExecStart=/opt/bin/tool\n[Install]\nWantedBy=multi-user.target\n", 0o600)
	h.Put(formerDrop, "[Service]\nNice=1\n", 0o600)
	h.PutLink(formerUnit, formerLink, 0)
	for _, u := range []string{"containerd.service", "a.service"} {
		must(h.StartUnit(tctx, u))
	}
	rs = []desired.Resource{
		managed("/etc/a", "a\n"), managed("/etc/edited", "as asked\n"), managed("/etc/absent", "x\n"),
		&desired.Artifact{Name: "image", Image: "registry.test/tool:1", Files: []desired.ArtifactFile{{Path: "/opt/bin/tool", Mode: 0o755, Member: "/tool"}}},
		&desired.File{Path: formerUnit, Content: desired.Text("[Service]\nExecStart=/opt/bin/tool\n[Install]\nWantedBy=multi-user.target\n"), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: formerDrop, Content: desired.Text("[Service]\nNice=1\n"), Mode: 0o600, Life: desired.Managed},
		&desired.Unit{Name: "a.service", Enablement: desired.Enabled, Activation: desired.Started},
		&desired.Unit{Name: "containerd.service", Activation: desired.Started},
	}
	return h, rs
}

func inherits(t *testing.T, h *memory.Host, rs ...desired.Resource) []string {
	t.Helper()
	got, err := fetching(h).Inherit(t.Context(), sealed(t, rs...))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What is inherited is planned for no more, and goes when nobody wants it any more;
// what somebody made of a file stays.
func TestInheritedGoes(t *testing.T) {
	h, rs := former(t)
	before := others(h)
	got := inherits(t, h, rs...)
	want := []string{"/etc/a", "/etc/edited", formerUnit, "/etc/systemd/system/containerd.service.d", formerDrop, formerLink,
		"/opt/bin/tool", "unit:a.service", "unit:containerd.service"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Errorf("to inherit changes: %s", diff)
	}
	same := slices.Concat(rs[:1], rs[3:])
	if p := runs(t, h, sealed(t, append(same, managed("/etc/edited", "edited\n"))...)); len(p.Actions) > 0 || len(p.Kept) > 0 {
		t.Errorf("%v, %q", verbs(p), p.Kept)
	}
	if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
		t.Errorf("kept %q", p.Kept)
	}
	for _, p := range []string{"/etc/a", "/etc/edited", formerUnit, formerDrop, "/etc/systemd/system/containerd.service.d", formerLink, "/opt/bin/tool"} {
		if _, err := h.Lstat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	for unit, want := range map[string]string{"a.service": "inactive", "containerd.service": "active"} {
		if s, err := h.Unit(t.Context(), unit); err != nil || s.ActiveState != want {
			t.Errorf("%s is %s, %v", unit, s.ActiveState, err)
		}
	}
}

// What somebody has edited since is kept, and said.
func TestInheritedEdited(t *testing.T) {
	h, rs := former(t)
	inherits(t, h, rs...)
	p := runs(t, h, sealed(t))
	if len(p.Kept) != 1 || !strings.HasPrefix(p.Kept[0], "/etc/edited ") {
		t.Errorf("kept %q", p.Kept)
	}
	has(t, h, "/etc/edited", "edited\n")
}

// Who has something in the ledger inherits nothing, and nobody what is another's.
func TestInheritsOnce(t *testing.T) {
	h, rs := former(t)
	aks := sealed(t, rs[0])
	aks.Owner = "other"
	must(aks.Seal())
	if _, err := fetching(h).Apply(t.Context(), aks); err != nil {
		t.Fatal(err)
	}
	if got := inherits(t, h, rs...); slices.Contains(got, "/etc/a") || len(got) == 0 {
		t.Errorf("inherited %q", got)
	}
	if got := inherits(t, h, rs...); len(got) > 0 {
		t.Errorf("again %q", got)
	}
}

// A run of another that was cut off stays owed, and what is inherited beside it is
// inherited all the same; what it was about to put in place is not.
func TestInheritsBesideAnOwedRun(t *testing.T) {
	for n, owed := 1, 0; ; n++ {
		h, rs := former(t)
		setup := sealed(t, rs[0], managed("/etc/setup", "x\n"))
		setup.Owner = "other"
		must(setup.Seal())
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, err := fetching(in).Apply(t.Context(), setup)
		if err == nil {
			if owed < 5 {
				t.Errorf("%d runs were cut off", owed)
			}
			return
		}
		owed++
		if got := inherits(t, h, rs[1:]...); !slices.Contains(got, "/etc/edited") || slices.Contains(got, "/etc/setup") {
			t.Fatalf("after a stop at effect %d: inherited %q", n, got)
		}
		if got := inherits(t, h, rs[1:]...); len(got) > 0 {
			t.Fatalf("after a stop at effect %d: again %q", n, got)
		}
		if _, err := fetching(h).Apply(t.Context(), setup); err != nil {
			t.Fatalf("after a stop at effect %d: %v", n, err)
		}
		runs(t, h, sealed(t))
		if _, err := h.Lstat(formerUnit); err == nil {
			t.Errorf("after a stop at effect %d: %s is left", n, formerUnit)
		}
		has(t, h, "/etc/setup", "x\n")
	}
}
