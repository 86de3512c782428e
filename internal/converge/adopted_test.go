package converge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

const ledgerFile = "/var/lib/berth/ledger.json"

// A lost or torn ledger costs no correctness: nothing is planned; what was
// replaced comes back at the end, and what can't be told from a file of others is
// kept and listed.
func TestLedgerLostThenWithdrawn(t *testing.T) {
	rs := []desired.Resource{managed("/etc/containerd/config.toml", "version = 3\n"), managed("/etc/ours", "ours\n"),
		&desired.Directory{Path: "/etc/kubernetes", Mode: 0o700}, kubelet("2.0.0")}
	for name, lose := range map[string]func(h *machine){
		"lost": func(h *machine) { must(h.Remove(ledgerFile)) },
		"torn": func(h *machine) { h.Put(ledgerFile, `{"version":1,"entr`, 0o600) },
	} {
		for _, between := range []int{0, 1, 2} {
			t.Run(name, func(t *testing.T) {
				h := newMachine()
				h.PutDir("/etc/kubernetes")
				before := others(h)
				if _, err := fetching(h).Apply(t.Context(), sealed(t, rs...)); err != nil {
					t.Fatal(err)
				}
				lose(h)
				for range between {
					res, err := fetching(h).Apply(t.Context(), sealed(t, rs...))
					if err != nil || !res.Plan.Empty() {
						t.Fatalf("%v, %v", verbs(res.Plan), err)
					}
				}
				res, err := fetching(h).Apply(t.Context(), sealed(t))
				if err != nil {
					t.Fatal(err)
				}
				if between > 0 {
					if len(res.Plan.Kept) != 1 || !strings.HasPrefix(res.Plan.Kept[0], "/etc/ours ") {
						t.Errorf("kept %q", res.Plan.Kept)
					}
				}
				has(t, h, "/etc/ours", "ours\n")
				must(h.Remove("/etc/ours"))
				if diff := cmp.Diff(before, others(h)); diff != "" {
					t.Error(diff)
				}
				if p := runs(t, h, sealed(t)); len(p.Actions)+len(p.Kept) > 0 {
					t.Errorf("again: %v, %q", verbs(p), p.Kept)
				}
			})
		}
	}
}

// An edit that came after the loss is noticed: the ledger knows again what berth
// made.
func TestLedgerLostThenEdited(t *testing.T) {
	h := newMachine()
	s := sealed(t, managed("/etc/containerd/config.toml", "version = 3\n"))
	runs(t, h, s)
	must(h.Remove(ledgerFile))
	runs(t, h, s)
	h.Put("/etc/containerd/config.toml", "edited\n", 0o644)
	if p := runs(t, h, sealed(t)); len(p.Kept) != 1 {
		t.Errorf("kept %q", p.Kept)
	}
	has(t, h, "/etc/containerd/config.toml", "edited\n")
}

// adopts is a machine on which everything that is wanted is there already.
func adopts() (*machine, []desired.Resource) {
	h := newMachine()
	h.Put("/etc/a", "a\n", 0o644)
	h.PutDir("/etc/kubernetes")
	h.PutLink("cluster.log", "/var/log/latest", 0)
	h.PutLink("../../../usr/lib/systemd/system/containerd.service", wants, 0)
	h.Put("/opt/bin/kubelet", "2.0.0", 0o755)
	return h, []desired.Resource{managed("/etc/a", "a\n"), &desired.Directory{Path: "/etc/kubernetes", Mode: 0o755},
		&desired.Link{Path: "/var/log/latest", Target: "cluster.log"}, kubelet("2.0.0"),
		&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}}
}

// What was as wanted when berth came stays when berth goes, and is listed once.
func TestAdoptedStays(t *testing.T) {
	h, rs := adopts()
	before := others(h)
	if _, err := fetching(h).Apply(t.Context(), sealed(t, rs...)); err != nil {
		t.Fatal(err)
	}
	p := runs(t, h, sealed(t))
	var names []string
	for _, r := range p.Kept {
		names = append(names, strings.Fields(r)[0])
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"/etc/a", "/etc/kubernetes", wants, "/opt/bin/kubelet", "/var/log/latest"}, names); diff != "" || len(p.Actions) > 0 {
		t.Errorf("%v, %q", verbs(p), p.Kept)
	}
	if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
		t.Errorf("again: %q", p.Kept)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// Drift of it is put back and is no original; it stays what it was.
func TestAdoptedDrifts(t *testing.T) {
	h, rs := adopts()
	before := others(h)
	if _, err := fetching(h).Apply(t.Context(), sealed(t, rs...)); err != nil {
		t.Fatal(err)
	}
	h.Put("/etc/a", "drift\n", 0o600)
	must(h.Chmod("/etc/kubernetes", 0o711))
	must(h.Chmod("/opt/bin/kubelet", 0o644))
	must(h.Remove("/var/log/latest"))
	if _, err := fetching(h).Apply(t.Context(), sealed(t, rs...)); err != nil {
		t.Fatal(err)
	}
	if p := runs(t, h, sealed(t)); len(p.Actions) > 0 || len(p.Kept) != 5 {
		t.Errorf("%v, %q", verbs(p), p.Kept)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// What replaces it later has it as its original.
func TestAdoptedIsReplaced(t *testing.T) {
	h, rs := adopts()
	before := others(h)
	if _, err := fetching(h).Apply(t.Context(), sealed(t, rs...)); err != nil {
		t.Fatal(err)
	}
	other := []desired.Resource{managed("/etc/a", "b\n"), &desired.Directory{Path: "/etc/kubernetes", Mode: 0o700},
		&desired.Link{Path: "/var/log/latest", Target: "other.log"}, kubelet("3.0.0"),
		&desired.Unit{Name: "containerd.service", Enablement: desired.Disabled}}
	for range 2 {
		if _, err := fetching(h).Apply(t.Context(), sealed(t, other...)); err != nil {
			t.Fatal(err)
		}
	}
	if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
		t.Errorf("%q", p.Kept)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// After the loss of all that berth keeps, what it wrote is no original of anybody: it
// goes when nobody wants it any more, and what others wrote comes back.
func TestOwnFilesAreNoOriginals(t *testing.T) {
	const ours, theirs = desired.Written + ".\n", "theirs\n"
	state := func(v string) *desired.State {
		return sealed(t, managed("/etc/made", ours+v), managed("/etc/systemd/system/containerd.service.d/a.conf", ours+"[Service]\nNice="+v+"\n"), managed("/etc/theirs", ours+v),
			managed("/etc/apt/apt.conf.d/95proxy", "//"+ours[1:]+v+"\n"))
	}
	for name, between := range map[string][]*desired.State{"another is wanted": {state("2")}, "the same, then another": {state("1"), state("2")}} {
		t.Run(name, func(t *testing.T) {
			for n, hit := 1, true; hit; n++ {
				h := newMachine()
				for _, dir := range []string{"/etc/systemd/system/containerd.service.d", "/etc/apt/apt.conf.d"} {
					h.PutDir(dir) // whose a directory is, nothing in it says
				}
				before := others(h)
				runs(t, h, state("1"))
				wipe(h, "/var/lib/berth")
				h.Put("/etc/theirs", theirs, 0o644)
				hit = false
				for _, s := range append(between, sealed(t)) {
					in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
					_, _ = engine(in, &providers{}).Apply(t.Context(), s)
					hit = hit || in.Hit() != nil
					h.Kill()
					if p := runs(t, h, s); len(p.Kept) > 0 {
						t.Errorf("kept %q", p.Kept)
					}
				}
				has(t, h, "/etc/theirs", theirs)
				must(h.Remove("/etc/theirs"))
				if d := cmp.Diff(before, others(h)); d != "" {
					t.Fatalf("killed at effect %d of each: %s", n, d)
				}
			}
		})
	}
}

// wipe is rm -r.
func wipe(h *machine, p string) {
	if names, err := h.ReadDir(p); err == nil {
		for _, name := range names {
			wipe(h, p+"/"+name)
		}
	}
	must(h.Remove(p))
}
