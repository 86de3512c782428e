package converge_test

import (
	"github.com/google/go-cmp/cmp"

	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// What somebody edits after a run was cut off, before its names changed, is what
// comes back in the end: the ledger said already what the run was about to do.
func TestEditedAfterACut(t *testing.T) {
	const name = "/etc/f"
	edited := func(h *machine) { h.Put(name, "administrator's\n", 0o644) }
	linked := func(h *machine) { h.PutLink("administrators", name, 0) }
	is := func(want string) func(*machine) bool {
		return func(h *machine) bool {
			data, err := h.ReadFile(name)
			return err == nil && string(data) == want
		}
	}
	leads := func(want string) func(*machine) bool {
		return func(h *machine) bool {
			target, err := h.Readlink(name)
			return err == nil && target == want
		}
	}
	absent := func(h *machine) bool {
		_, err := h.Lstat(name)
		return err != nil
	}
	for what, c := range map[string]struct {
		// before is what an earlier contract put there, arrange what the image has.
		arrange func(h *machine)
		before  []desired.Resource
		now     []desired.Resource
		// untouched says that no name has changed yet.
		untouched func(h *machine) bool
		edit      func(h *machine)
		kept      func(h *machine) bool
		// least is at how many cuts this has to be tried.
		least int
	}{
		"file": {arrange: func(h *machine) { h.Put(name, "image's\n", 0o644) }, now: []desired.Resource{managed(name, "berth's\n")},
			untouched: is("image's\n"), edit: edited, kept: is("administrator's\n"), least: 30},
		"absent file": {now: []desired.Resource{managed(name, "berth's\n")},
			untouched: absent, edit: edited, kept: is("administrator's\n"), least: 15},
		"link": {arrange: func(h *machine) { h.PutLink("images", name, 0) }, now: []desired.Resource{&desired.Link{Path: name, Target: "berths"}},
			untouched: leads("images"), edit: linked, kept: leads("administrators"), least: 20},
		"file that becomes a link": {arrange: func(h *machine) { h.Put(name, "image's\n", 0o644) }, now: []desired.Resource{&desired.Link{Path: name, Target: "berths"}},
			untouched: is("image's\n"), edit: edited, kept: is("administrator's\n"), least: 29},
		"our file, changed": {before: []desired.Resource{managed(name, "1\n")}, now: []desired.Resource{managed(name, "2\n")},
			untouched: is("1\n"), edit: edited, kept: absent, least: 10}, // drift of berth's own
		"our file, deleted": {before: []desired.Resource{managed(name, "1\n")},
			untouched: is("1\n"), edit: edited, kept: is("administrator's\n"), least: 5},
		"removal": {arrange: func(h *machine) { h.PutLink("/dev/null", mask, 0) },
			now:       []desired.Resource{&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}},
			untouched: func(h *machine) bool { target, err := h.Readlink(mask); return err == nil && target == "/dev/null" },
			edit:      func(h *machine) { h.Put(mask, containerdUnit+"#administrator's\n", 0o644) },
			kept:      holds(mask, containerdUnit+"#administrator's\n"), least: 15},
	} {
		t.Run(what, func(t *testing.T) {
			tried := 0
			for n, hit := 1, true; hit; n++ {
				h := newMachine()
				if c.arrange != nil {
					c.arrange(h)
				}
				runs(t, h, sealed(t, c.before...))
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = engine(in, &providers{}).Apply(t.Context(), sealed(t, c.now...))
				hit = in.Hit() != nil
				h.Kill()
				if !hit || !c.untouched(h) {
					continue
				}
				tried++
				c.edit(h)
				runs(t, h, sealed(t, c.now...))
				converged(t, h, sealed(t, c.now...))
				runs(t, h, sealed(t))
				if !c.kept(h) {
					t.Errorf("cut at effect %d, edited, run again, withdrawn: lost\n%v", n, h.Tree("/etc/f", mask))
				}
			}
			if tried < c.least {
				t.Errorf("tried at %d cuts, want %d", tried, c.least)
			}
		})
	}
}

const mask = "/etc/systemd/system/containerd.service"

func holds(name, want string) func(*machine) bool {
	return func(h *machine) bool {
		data, err := h.ReadFile(name)
		return err == nil && string(data) == want
	}
}

// With a power cut in place of the kill nothing of an edit is lost either.
func TestEditedAfterAPowerCut(t *testing.T) {
	for _, seed := range []uint64{memory.LoseAll, memory.NamesOnly, 5} {
		for n, hit := 1, true; hit; n++ {
			h := newMachine()
			h.Put("/etc/f", "image's\n", 0o644)
			s := sealed(t, managed("/etc/f", "berth's\n"))
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_, _ = engine(in, &providers{}).Apply(t.Context(), s)
			hit = in.Hit() != nil
			h.PowerCut(seed)
			h.Boot()
			if !holds("/etc/f", "image's\n")(h) {
				continue
			}
			h.Put("/etc/f", "administrator's\n", 0o644)
			runs(t, h, s)
			runs(t, h, sealed(t))
			has(t, h, "/etc/f", "administrator's\n")
		}
	}
}

// Somebody writes what the next document wants: nothing is to do, and when the
// document goes the file goes with it.
func TestWrittenAheadByOthers(t *testing.T) {
	h := newMachine()
	before := others(h)
	runs(t, h, sealed(t, managed("/etc/new", "1\n")))
	h.Put("/etc/new", "2\n", 0o644)
	if p := runs(t, h, sealed(t, managed("/etc/new", "2\n"))); !p.Empty() {
		t.Errorf("planned %q", verbs(p))
	}
	if p := runs(t, h, sealed(t)); len(p.Kept) > 0 {
		t.Errorf("kept %q", p.Kept)
	}
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// What stood at a name before berth comes back also where somebody has taken away what berth
// put there.
func TestOriginalOfWhatIsGone(t *testing.T) {
	h := newMachine()
	before := others(h)
	s := sealed(t, managed("/etc/containerd/config.toml", "version = 3\n"), managed("/etc/new", "1\n"))
	runs(t, h, s)
	must(h.Remove("/etc/containerd/config.toml"))
	must(h.Remove("/etc/new"))
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}
