package converge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const indexFile = "/var/lib/berth/originals/index.json"

// foreign is a machine with files of somebody else, and the state that replaces all
// of them.
func foreign(t *testing.T, contents ...string) (*machine, *desired.State) {
	h := newMachine()
	var files []desired.Resource
	for i, content := range contents {
		p := fmt.Sprintf("/etc/foreign/%03d", i)
		h.Put(p, content, 0o644)
		files = append(files, managed(p, "new\n"))
	}
	h.Flush()
	return h, sealed(t, files...)
}

func syncs(r *effect.Recorder) int {
	n := 0
	for _, line := range r.Lines() {
		if strings.HasPrefix(line, "sync") {
			n++
		}
	}
	return n
}

// A batch of small foreign files costs one sync each, for what replaces it: their
// originals become durable together.
func TestOriginalsAreSyncedTogether(t *testing.T) {
	count := func(n int) int {
		contents := make([]string, n)
		for i := range contents {
			contents[i] = fmt.Sprintf("image's %d\n", i)
		}
		h, st := foreign(t, contents...)
		r := effect.Record(h)
		if _, err := engine(r, &providers{}).Apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		return syncs(r)
	}
	if few, many := count(10), count(110); many-few != 100 {
		t.Errorf("10 files: %d syncs, 110 files: %d", few, many)
	}
}

// Small ones are in the index, large ones beside it, and so is what has no room
// there; all come back, and nothing is left of them.
func TestOriginalsOfAllSizes(t *testing.T) {
	contents := []string{"", "a", strings.Repeat("b", 64<<10), strings.Repeat("c", 64<<10+1), strings.Repeat("d", 3<<20)}
	for i := range 80 {
		contents = append(contents, strings.Repeat(string(rune('0'+i)), 60<<10))
	}
	h, st := foreign(t, contents...)
	before := others(h)
	runs(t, h, st)
	names, err := h.ReadDir("/var/lib/berth/originals")
	must(err)
	index, err := h.ReadFile(indexFile)
	must(err)
	if len(names) < 4 || len(names) > 25 || len(index) > 6<<20 {
		t.Errorf("%d names, an index of %d bytes", len(names), len(index))
	}
	h.PowerCut(memory.LoseAll)
	h.Boot()
	runs(t, h, sealed(t))
	h.PowerCut(memory.LoseAll)
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
	if left, err := h.ReadDir("/var/lib/berth/originals"); err != nil || len(left) > 0 {
		t.Errorf("originals that are left: %v, %v", left, err)
	}
}

// An index that is torn is written again with the names that the ledger knows.
func TestTornIndex(t *testing.T) {
	h, st := foreign(t, strings.Repeat("c", 100<<10))
	runs(t, h, st)
	h.Put(indexFile, `{"names":{`, 0o600)
	runs(t, h, sealed(t, append(st.Resources, managed("/etc/more", ""))...))
	must(h.Remove(ledgerFile)) // what is known now, the index tells
	runs(t, h, sealed(t))
	has(t, h, "/etc/foreign/000", strings.Repeat("c", 100<<10))
}
