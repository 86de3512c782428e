package converge_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

const ledgerFile = "/var/lib/berth/ledger.json"

// A lost or torn ledger costs no correctness: nothing is planned; what was
// replaced comes back at the end, files that say that berth wrote them go once they were
// seen, and what can't be told from something of others is kept and listed.
func TestLedgerLostThenWithdrawn(t *testing.T) {
	rs := []desired.Resource{managed("/etc/containerd/config.toml", "version = 3\n"), managed("/etc/ours", "ours\n"),
		&desired.Directory{Path: "/etc/kubernetes", Mode: 0o700}, kubelet("2.0.0"), &desired.Link{Path: "/etc/link", Target: "ours"}}
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
					if len(res.Plan.Kept) != 1 || !strings.HasPrefix(res.Plan.Kept[0], "/etc/link ") {
						t.Errorf("kept %q", res.Plan.Kept)
					}
				} else { // no document names it
					has(t, h, "/etc/ours", "ours\n")
					must(h.Remove("/etc/ours"))
				}
				must(h.Remove("/etc/link"))
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
			managed("/etc/apt/apt.conf.d/95proxy", "//"+ours[1:]+v+"\n"), managed("/etc/made.json", `{"v":`+v+"}"), managed("/etc/edited.json", `{"v":`+v+"}"),
			&desired.File{Path: "/etc/made.key", Content: desired.SecretBytes([]byte("secret " + v)), Mode: 0o600, Life: desired.Managed})
	}
	for name, between := range map[string][]*desired.State{"another is wanted": {state("2")}, "the same, then another": {state("1"), state("2")}, "the same": {state("1")}} {
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
				h.Overwrite("/etc/edited.json", theirs)
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
				for _, p := range []string{"/etc/theirs", "/etc/edited.json"} {
					has(t, h, p, theirs)
					must(h.Remove(p))
				}
				if d := cmp.Diff(before, others(h)); d != "" {
					t.Fatalf("killed at effect %d of each: %s", n, d)
				}
			}
		})
	}
}

// What berth put back for whoever had it before is no file of berth's, and neither is an
// original that came back, a seed or a file of others with a part that is berth's: none says
// that berth wrote it.
func TestFilesOfOthersSayNothing(t *testing.T) {
	h := newMachine()
	h.Put("/etc/a", "a\n", 0o644)
	h.Put("/etc/b", "b\n", 0o644)
	h.Put("/etc/environment", "A=1\n", 0o644)
	rs := []desired.Resource{managed("/etc/a", "a\n"), &desired.Block{Path: "/etc/environment", Name: "proxy", Lines: "B=2\n", Mode: 0o644},
		&desired.File{Path: "/etc/seed", Content: desired.Text("seed\n"), Mode: 0o644, Life: desired.Seed}}
	runs(t, h, sealed(t, append(rs, managed("/etc/b", "ours\n"))...))
	h.Put("/etc/a", "drift\n", 0o644)
	runs(t, h, sealed(t, rs...))
	has(t, h, "/etc/a", "a\n")
	has(t, h, "/etc/b", "b\n")
	for _, p := range []string{"/etc/a", "/etc/b", "/etc/environment", "/etc/seed"} {
		if x, err := h.Xattrs(p); err != nil || len(x) > 0 {
			t.Errorf("%s: %q, %v", p, x, err)
		}
	}
	wipe(h, "/var/lib/berth")
	runs(t, h, sealed(t, managed("/etc/a", "a\n")))
	if p := runs(t, h, sealed(t)); len(p.Kept) != 1 {
		t.Errorf("kept %q", p.Kept)
	}
	has(t, h, "/etc/a", "a\n")
}

// A file that moves into place on a file system without such attributes, or is written by
// a process that may not set them, is written all the same.
func TestFilesWithoutProvenance(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EOPNOTSUPP, syscall.EPERM} {
		h := newMachine()
		before := others(h)
		e := engine(noXattrs{h, errno}, &providers{})
		for _, s := range []*desired.State{sealed(t, managed("/etc/a.json", "{}")), sealed(t)} {
			if _, err := e.Apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(before, others(h)); d != "" {
			t.Error(d)
		}
	}
}

// noXattrs refuses extended attributes of files.
type noXattrs struct {
	*machine
	errno syscall.Errno
}

// Create implements host.FS.
func (n noXattrs) Create(p string) (host.File, error) {
	f, err := n.machine.Create(p)
	return refusing{f, n.errno}, err
}

type refusing struct {
	host.File
	errno syscall.Errno
}

// SetXattr implements host.File.
func (r refusing) SetXattr(string, []byte) error { return r.errno }

// wipe is rm -r.
func wipe(h *machine, p string) {
	if names, err := h.ReadDir(p); err == nil {
		for _, name := range names {
			wipe(h, p+"/"+name)
		}
	}
	must(h.Remove(p))
}
