package converge_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

// A document that wants all of a file of which an earlier one wanted a part, or the other way
// round, is in force after one run, and so is any document after a run of it that was killed
// anywhere. Then all is left that was there before.
func TestPartBecomesTheWholeFile(t *testing.T) {
	none, parts, file := sealed(t), sealed(t, lines("a", "B=1\n"), lines("b", "D=1\n")), sealed(t, managed(environment, "C=1\n"))
	keyed, itsFile := sealed(t, keys("A", "1", "E", "2")), sealed(t, managed(environment, "A=7\nE=3\nF=1\n"))
	link := sealed(t, &desired.Link{Path: environment, Target: "/etc/z"})
	for name, pair := range map[string][2]*desired.State{
		"parts to file": {parts, file}, "file to parts": {file, parts},
		"keys to file": {keyed, itsFile}, "file to keys": {itsFile, keyed},
		"parts to link": {parts, link}, "link to parts": {link, parts},
	} {
		for _, before := range []*string{new("A=0\n"), nil} {
			for _, third := range []*desired.State{pair[0], pair[1], none} {
				t.Run(name, func(t *testing.T) { thirdAfter(t, before, pair, third) })
			}
		}
	}
}

// thirdAfter kills a second document anywhere and has a third one, and then none, in force.
func thirdAfter(t *testing.T, before *string, pair [2]*desired.State, third *desired.State) {
	t.Helper()
	for n, hit := 1, true; hit; n += stride {
		h := newMachine()
		if before != nil {
			h.Put(environment, *before, 0o640)
		}
		untouched := others(h)
		runs(t, h, pair[0])
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), pair[1])
		hit = in.Hit() != nil
		h.Kill()
		kept := runs(t, h, third).Kept
		converged(t, h, third)
		if kept = append(kept, runs(t, h, sealed(t)).Kept...); len(kept) > 0 {
			t.Errorf("killed after effect %d (%v): kept %q", n, in.Hit(), kept)
		}
		if d := cmp.Diff(untouched, others(h)); d != "" {
			t.Fatalf("killed after effect %d (%v): %s", n, in.Hit(), d)
		}
	}
}

// A file that is its owner's once it is there loses the part of an earlier document.
func TestPartOfAFileThatStays(t *testing.T) {
	h := newMachine()
	h.Put(environment, "A=0\n", 0o644)
	runs(t, h, sealed(t, lines("a", "B=1\n")))
	runs(t, h, sealed(t, &desired.File{Path: environment, Content: desired.Text("C=1\n"), Mode: 0o644, Life: desired.Seed}))
	has(t, h, environment, "A=0\n")
}

// A file that is its owner's once it is there takes the place of one that parts alone made, in
// the run in which they go, also where a run was killed meanwhile.
func TestSeedInPlaceOfParts(t *testing.T) {
	seed := sealed(t, &desired.File{Path: environment, Content: desired.Text("C=1\n"), Mode: 0o600, Life: desired.Seed})
	for name, parts := range map[string][]desired.Resource{"a part": {lines("a", "B=1\n")}, "two parts": {lines("a", "B=1\n"), lines("b", "D=1\n")}, "keys": {keys("A", "1")}} {
		t.Run(name, func(t *testing.T) {
			for n, hit := 1, true; hit; n++ {
				h := newMachine()
				runs(t, h, sealed(t, parts...))
				if p, err := engine(h, &providers{}).Plan(t.Context(), seed); err != nil || !strings.Contains(p.Actions[len(p.Actions)-1].Diff, "\n+C=1\n") {
					t.Fatalf("the plan does not show the file: %+v, %v", p, err)
				}
				in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				_, _ = engine(in, &providers{}).Apply(t.Context(), seed)
				hit = in.Hit() != nil
				h.Kill()
				runs(t, h, seed)
				converged(t, h, seed)
				has(t, h, environment, "C=1\n")
				if info, err := h.Lstat(environment); err != nil || info.Mode != 0o600 {
					t.Fatalf("killed after effect %d (%v): %v, %v", n, in.Hit(), info, err)
				}
			}
		})
	}
}

// The directories above a file that is none of the ledger's are there as long as an owner
// wants it, and go with it.
func TestDirectoriesOfPartsAndSwap(t *testing.T) {
	part := func(name string) *desired.Block {
		b := lines(name, "A=1\n")
		b.Path = "/etc/tool/conf.d/env"
		return b
	}
	for name, pair := range map[string][2]desired.Resource{
		"part and file": {part("a"), managed("/etc/tool/conf.d/x", "1\n")},
		"swap and file": {&desired.Swap{Path: "/etc/tool/conf.d/swap", Bytes: 2 * mib}, managed("/etc/tool/conf.d/x", "1\n")},
		"two parts":     {part("a"), part("b")},
	} {
		t.Run(name, func(t *testing.T) {
			aks, other := sealed(t, pair[0]), of(desired.OwnerOSC, sealed(t, pair[1]))
			h := swapping()
			untouched := others(h)
			for _, s := range []*desired.State{other, aks, of(desired.OwnerOSC, sealed(t)), aks, other, sealed(t), other, of(desired.OwnerOSC, sealed(t))} {
				runs(t, h, s)
				converged(t, h, s)
			}
			if d := cmp.Diff(untouched, others(h)); d != "" {
				t.Error(d)
			}
			if left := slices.Collect(maps.Keys(entries(h))); len(left) > 0 {
				t.Errorf("the ledger has %q", left)
			}
		})
	}
}

// What somebody made a link stays, and the part goes with what it was in.
func TestPartOfWhatBecameALink(t *testing.T) {
	h := newMachine()
	h.Put(environment, "A=0\n", 0o644)
	runs(t, h, sealed(t, lines("a", "B=1\n")))
	must(h.Remove(environment))
	h.PutLink("/srv/env", environment, 0)
	if p := runs(t, h, sealed(t)); len(p.Kept) != 1 || !strings.Contains(p.Kept[0], "a link to /srv/env") {
		t.Errorf("kept %q", p.Kept)
	}
	converged(t, h, sealed(t))
}

// A part is refused where a link stood before an earlier document made it a file: as it is
// where the link stands still.
func TestPartOfWhatWasALink(t *testing.T) {
	h := newMachine()
	h.PutLink("/srv/env", environment, 0)
	untouched := others(h)
	runs(t, h, sealed(t, managed(environment, "C=1\n")))
	before := others(h)
	_, err := engine(h, &providers{}).Apply(t.Context(), sealed(t, lines("a", "B=1\n")))
	if err == nil || !strings.Contains(err.Error(), "a link to /srv/env, not a file") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff(before, others(h)); d != "" {
		t.Error(d)
	}
	runs(t, h, sealed(t))
	if d := cmp.Diff(untouched, others(h)); d != "" {
		t.Error(d)
	}
}

// A file that only parts made goes with the last of them, however its path is spelled.
func TestPartsInTwoSpellings(t *testing.T) {
	h := newMachine()
	untouched := others(h)
	a, b := lines("a", "A=1\n"), lines("b", "B=1\n")
	a.Path, b.Path = "/lib/env", "/usr/lib/env"
	for _, s := range []*desired.State{sealed(t, b), sealed(t, a), sealed(t)} {
		runs(t, h, s)
		converged(t, h, s)
	}
	if d := cmp.Diff(untouched, others(h)); d != "" {
		t.Error(d)
	}
}

// What somebody made of a file that was berth's as a whole stays where the next document wants
// a part of it.
func TestPartOfAnEditedFile(t *testing.T) {
	h := newMachine()
	h.Put(environment, "A=0\n", 0o644)
	runs(t, h, sealed(t, managed(environment, "C=1\n")))
	h.Put(environment, "C=2\n", 0o644)
	runs(t, h, sealed(t, lines("a", "B=1\n")))
	runs(t, h, sealed(t))
	has(t, h, environment, "C=2\n")
}

// All of a file and a part of it are refused in the documents of two owners, whichever comes
// first.
func TestPartBesideTheWholeFile(t *testing.T) {
	part, file := sealed(t, lines("a", "B=1\n")), of(desired.OwnerOSC, sealed(t, managed(environment, "C=1\n")))
	for _, order := range [][]*desired.State{{part, file}, {file, part}} {
		h := newMachine()
		h.Put(environment, "A=0\n", 0o644)
		runs(t, h, order[0])
		before := others(h)
		for _, over := range []bool{false, true} {
			_, err := engine(h, &providers{}, func(o *converge.Options) { o.TakeOver = over }).Apply(t.Context(), order[1])
			e, ok := errors.AsType[*converge.OwnedElsewhereError](err)
			if !ok || e.Other != order[0].Owner || !strings.Contains(e.Hint(), "a part of it") {
				t.Errorf("not refused: %v", err)
			}
		}
		if d := cmp.Diff(before, others(h)); d != "" {
			t.Error(d)
		}
	}
}
