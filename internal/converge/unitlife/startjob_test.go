package unitlife_test

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// What the engine needs to start one service again after a change, and what of
// that the start job takes.
func TestStartJob(t *testing.T) {
	t.Run("model", func(t *testing.T) { startJob(t, modelled()) })
	if inMachine() {
		t.Run("machine", func(t *testing.T) { startJob(t, real(t)) })
	}
}

func startJob(t *testing.T, w *world) {
	l := &life{there: map[string]string{data + "x": ""}, up: []string{a}}
	t.Cleanup(func() { w.clear(l, t.Failed()) })
	w.arrange(l)
	var jobs, runs []time.Duration
	for i := range 9 {
		rs := []desired.Resource{file(admin+a, daemon(string(rune('a'+i)))), unit(a, "started")}
		began := w.Now()
		res, err := w.apply(state(t, desired.OwnerOSC, rs))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, w.Now().Sub(began))
		for _, s := range res.Timeline {
			if s.ID == desired.UnitID(a) && s.Phase == "commit" {
				jobs = append(jobs, s.End.Sub(s.Start))
			}
		}
	}
	if len(jobs) != len(runs) {
		t.Fatalf("%d starts in %d runs", len(jobs), len(runs))
	}
	slices.Sort(jobs)
	slices.Sort(runs)
	t.Logf("a changed service: the run takes %v, its start with the reload before it %v (medians of %d)",
		runs[len(runs)/2].Round(100*time.Microsecond), jobs[len(jobs)/2].Round(100*time.Microsecond), len(runs))
	if _, err := w.apply(state(t, desired.OwnerOSC, nil)); err != nil {
		t.Error(err)
	}
}
