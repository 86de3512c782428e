package converge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const environment = "/etc/environment"

func lines(name, text string) *desired.Block {
	return &desired.Block{Path: environment, Name: name, Lines: text, Mode: 0o644}
}

func keys(kv ...string) *desired.Block {
	b := &desired.Block{Path: environment, Name: "proxy", Keys: map[string]string{}, Mode: 0o644}
	for i := 0; i < len(kv); i += 2 {
		b.Keys[kv[i]] = kv[i+1]
	}
	return b
}

// A key that a document has dropped is its owner's again, whatever comes after that.
func TestADroppedKeyIsSomebodyElses(t *testing.T) {
	for name, before := range map[string]string{"there was none": "LANG=C\n", "there was one": "LANG=C\nNO_PROXY=old\n"} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put(environment, before, 0o644)
			runs(t, h, sealed(t, keys("HTTP_PROXY", "a", "NO_PROXY", "b")))
			dropped := sealed(t, keys("HTTP_PROXY", "a"))
			runs(t, h, dropped)
			text, err := h.ReadFile(environment)
			must(err)
			if strings.Contains(string(text), "NO_PROXY=b") {
				t.Fatalf("dropped: %q", text)
			}
			theirs := strings.Replace(string(text), "NO_PROXY=old\n", "", 1) + "NO_PROXY=theirs\n"
			h.Overwrite(environment, theirs)
			converged(t, h, dropped)
			for i, st := range []*desired.State{dropped, sealed(t, keys("HTTP_PROXY", "c", "FTP_PROXY", "d")), sealed(t, keys("HTTP_PROXY", "c", "NO_PROXY", "e")), sealed(t)} {
				runs(t, h, st)
				if i == 2 {
					continue // it is wanted again
				}
				if text, _ := h.ReadFile(environment); !strings.Contains(string(text), "NO_PROXY=theirs\n") {
					t.Errorf("%d resources: %q", len(st.Resources), text)
				}
			}
		})
	}
}

// A block is its own part of a file: others edit the rest, and when the block goes
// the file is as if it had never been there.
func TestBlocks(t *testing.T) {
	const theirs = "LANG=C\nHTTP_PROXY=old\n"
	for name, c := range map[string]struct {
		before   string
		absent   bool
		first    []desired.Resource
		want     string
		second   []desired.Resource
		thenWant string
	}{
		"lines": {
			before: theirs, first: []desired.Resource{lines("a", "A=1\n")}, want: theirs + "# BEGIN berth a\nA=1\n# END berth a\n",
			second: []desired.Resource{lines("a", "A=2\nB=3\n")}, thenWant: theirs + "# BEGIN berth a\nA=2\nB=3\n# END berth a\n",
		},
		"two blocks": {
			before: theirs, first: []desired.Resource{lines("a", "A=1\n"), lines("b", "B=1\n")},
			want:   theirs + "# BEGIN berth a\nA=1\n# END berth a\n# BEGIN berth b\nB=1\n# END berth b\n",
			second: []desired.Resource{lines("b", "B=1\n")}, thenWant: theirs + "# BEGIN berth b\nB=1\n# END berth b\n",
		},
		"a block more in a file that was not there": {
			absent: true, first: []desired.Resource{lines("b", "B=1\n")}, want: "# BEGIN berth b\nB=1\n# END berth b\n",
			second: []desired.Resource{lines("a", "A=1\n"), lines("b", "B=1\n")}, thenWant: "# BEGIN berth b\nB=1\n# END berth b\n# BEGIN berth a\nA=1\n# END berth a\n",
		},
		"one block after another in a file that was not there": {
			absent: true, first: []desired.Resource{lines("a", "A=1\n"), lines("b", "B=1\n")}, want: "# BEGIN berth a\nA=1\n# END berth a\n# BEGIN berth b\nB=1\n# END berth b\n",
			second: []desired.Resource{lines("b", "B=1\n"), lines("c", "C=1\n")}, thenWant: "# BEGIN berth b\nB=1\n# END berth b\n# BEGIN berth c\nC=1\n# END berth c\n",
		},
		"keys": {
			before: theirs, first: []desired.Resource{keys("HTTP_PROXY", "new", "NO_PROXY", "x")}, want: "LANG=C\nHTTP_PROXY=new\nNO_PROXY=x\n",
			second: []desired.Resource{keys("LANG", "de", "NO_PROXY", "y")}, thenWant: "LANG=de\nHTTP_PROXY=old\nNO_PROXY=y\n",
		},
		"lines, no final newline": {
			before: "A=0\nB=0", first: []desired.Resource{lines("a", "A=1\n")}, want: "A=0\nB=0\n# BEGIN berth a\nA=1\n# END berth a\n",
			second: []desired.Resource{lines("a", "A=2\n")}, thenWant: "A=0\nB=0\n# BEGIN berth a\nA=2\n# END berth a\n",
		},
		"keys, no final newline": {
			before: "A=0\nB=0", first: []desired.Resource{keys("B", "1", "C", "1")}, want: "A=0\nB=1\nC=1\n",
			second: []desired.Resource{keys("C", "2")}, thenWant: "A=0\nB=0\nC=2\n",
		},
		"keys assigned twice": {
			before: "A=0\nB=1\nA=2\nB=3\nC=4\n", first: []desired.Resource{keys("A", "9", "B", "8")}, want: "A=9\nB=8\nC=4\n",
			second: []desired.Resource{keys("A", "7")}, thenWant: "A=7\nB=1\nB=3\nC=4\n",
		},
		"no file": {
			absent: true, first: []desired.Resource{lines("a", "A=1\n")}, want: "# BEGIN berth a\nA=1\n# END berth a\n",
			second: []desired.Resource{lines("a", "A=2\n")}, thenWant: "# BEGIN berth a\nA=2\n# END berth a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := func() *memory.Host {
				h := newMachine()
				if !c.absent {
					h.Put(environment, c.before, 0o640)
					must(h.Chown(environment, 3, 4))
				}
				h.Flush()
				return h
			}
			before := others(machine())
			steps := []*desired.State{sealed(t, c.first...), sealed(t, c.second...), sealed(t)}
			h := machine()
			for i, want := range []string{c.want, c.thenWant} {
				runs(t, h, steps[i])
				has(t, h, environment, want)
				converged(t, h, steps[i])
			}
			runs(t, h, steps[2])
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Errorf("withdrawn: %s", diff)
			}
			for n, hit := 1, true; hit; n++ {
				h := machine()
				hit = false
				for _, s := range steps {
					in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
					_, _ = engine(in, &providers{}).Apply(t.Context(), s)
					hit = hit || in.Hit() != nil
					h.Kill()
					runs(t, h, s)
					converged(t, h, s)
				}
				if diff := cmp.Diff(before, others(h)); diff != "" {
					t.Fatalf("killed at effect %d of each: %s", n, diff)
				}
			}
		})
	}
}

// What others write beside a block, meanwhile or into it, is seen.
func TestBlockDrift(t *testing.T) {
	h := newMachine()
	h.Put(environment, "A=0\n", 0o644)
	s := sealed(t, lines("a", "A=1\n"))
	runs(t, h, s)
	h.Put(environment, "# BEGIN berth a\nA=9\n# END berth a\nMORE=1\n", 0o644)
	runs(t, h, s)
	has(t, h, environment, "# BEGIN berth a\nA=1\n# END berth a\nMORE=1\n")
	h.Put(environment, "# BEGIN berth a\nMORE=1\n", 0o644)
	runs(t, h, s)
	has(t, h, environment, "MORE=1\n# BEGIN berth a\nA=1\n# END berth a\n")
	must(h.Remove(environment))
	h.PutLink("/etc/other", environment, 0)
	if _, err := engine(h, &providers{}).Apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), "a link to /etc/other") {
		t.Errorf("error %v", err)
	}
}

// A block for readers to whom the first word counts is first, whatever others put
// before it, and goes as any other.
func TestFirstBlock(t *testing.T) {
	h := newMachine()
	h.Put(environment, "A=0\n", 0o644)
	first := lines("a", "A=1\n")
	first.First = true
	s := sealed(t, first)
	runs(t, h, s)
	has(t, h, environment, "# BEGIN berth a\nA=1\n# END berth a\nA=0\n")
	converged(t, h, s)
	h.Put(environment, "A=2\n# BEGIN berth a\nA=1\n# END berth a\nA=0\n", 0o644)
	runs(t, h, s)
	has(t, h, environment, "# BEGIN berth a\nA=1\n# END berth a\nA=2\nA=0\n")
	runs(t, h, sealed(t))
	has(t, h, environment, "A=2\nA=0\n")
}

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

// All of a file and a part of it are refused in one document, and in those of two owners,
// whichever comes first.
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
	_, err := engine(newMachine(), &providers{}).Apply(t.Context(), sealed(t, lines("a", "B=1\n"), managed(environment, "C=1\n")))
	if err == nil || !strings.Contains(err.Error(), "file:"+environment+" is the whole file") {
		t.Errorf("in one document: %v", err)
	}
}
