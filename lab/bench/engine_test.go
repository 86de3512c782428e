package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrintEngines(t *testing.T) {
	engine := func(name string, ms time.Duration, syncs int) *Engine {
		e := &Engine{Name: name}
		for c := range engineCases {
			e.Times[c] = []time.Duration{ms * time.Millisecond, 3 * ms * time.Millisecond}
			e.Counts[c] = Applied{Syncs: syncs, Writes: 2 * syncs}
		}
		return e
	}
	for want, engines := range map[string][]*Engine{
		"one changed              now 0.020 (0.010–0.030), 4 syncs, 8 writes   bound 0.010, 4 syncs": {engine("now", 10, 4)},
		"one changed              old 0.080 (0.040–0.120), 7 syncs, 14 writes   now 0.020 (0.010–0.030), 4 syncs, 8 writes   ratio 0.25   bound 0.010, 4 syncs": {
			engine("old", 40, 7), engine("now", 10, 4)},
	} {
		var w strings.Builder
		PrintEngines(&w, engines)
		lines := strings.Split(w.String(), "\n")
		if d := cmp.Diff(want, strings.TrimSpace(lines[3])); d != "" || len(lines) != 8 {
			t.Errorf("%s\n%s", w.String(), d)
		}
	}
}

// TestEngineWords: each application finds what its case says.
func TestEngineWords(t *testing.T) {
	var got []int
	for i := range words {
		got = append(got, caseOf(i))
	}
	want := []int{allNew, unchanged, unchanged, unchanged, oneChanged, oneChanged, oneChanged}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestEngineCounts builds the engine of this tree and applies with it.
func TestEngineCounts(t *testing.T) {
	dir := t.TempDir()
	e, err := buildEngine(t.Context(), "now", "../..", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.count(t.Context(), rootsIn(dir)); err != nil {
		t.Fatal(err)
	}
	for c, of := range engineCases {
		if n := e.Counts[c]; (n.Writes == 0) != (c == unchanged) || (n.Syncs == 0) != (c == unchanged) {
			t.Errorf("%s: %d writes, %d syncs", of.name, n.Writes, n.Syncs)
		}
	}
}
