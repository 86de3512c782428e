package converge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
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

// A block is one whichever way the path of its file is spelled: a document that spells it
// anew changes nothing, and two owners meet.
func TestABlockOfTwoSpellings(t *testing.T) {
	spelled := func(path, text string) *desired.Block {
		return &desired.Block{Path: path, Name: "pool", Lines: text, Mode: 0o644}
	}
	h := newMachine()
	h.PutLink("/etc/pool", "/etc/alias", 0)
	h.Put("/etc/pool/conf", "a\n", 0o644)
	before := h.Tree("/etc")
	first := sealed(t, spelled("/etc/alias/conf", "b\n"))
	runs(t, h, first)
	again := sealed(t, spelled("/etc/pool/conf", "b\n"))
	converged(t, h, again)

	other := of(desired.OwnerOSC, sealed(t, spelled("/etc/alias/conf", "c\n")))
	if _, err := engine(h, &providers{}).Apply(t.Context(), other); err == nil {
		t.Error("another owner's block of that name is overwritten")
	}
	runs(t, h, sealed(t, spelled("/etc/pool/conf", "d\n")))
	converged(t, h, sealed(t, spelled("/etc/alias/conf", "d\n")))
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, h.Tree("/etc")); diff != "" {
		t.Error(diff)
	}
}
