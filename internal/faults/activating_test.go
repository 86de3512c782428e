package faults_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// cutWhileStarting is a run that is cut off while a unit has begun to start and
// is not yet ready. It says whether the unit came to that.
func (s scenario) cutWhileStarting(t *testing.T, h *memory.Host, unit string) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := false
	h.Behave(unit, func(memory.Start) memory.Outcome {
		if !starting[unit](h) {
			return startsIf(false)
		}
		begun = true
		cancel()
		return memory.Outcome{Slow: true}
	})
	_, err := engine(h, nil, 1).Apply(ctx, s.config.state(h))
	daemons(h)
	h.Kill()
	if begun != (err != nil) {
		t.Fatalf("%s began to start: %v, and the run ended with %v", unit, begun, err)
	}
	if st := h.Units()[unit]; begun && st.ActiveState != "activating" {
		t.Fatalf("%s is %s", unit, st.ActiveState)
	}
	return begun
}

// A run that is cut off while a unit starts, and run again, restarts nothing: the
// start goes on. Run with another configuration, no unit is left with the old
// one: to start what is being started does not make it read its files again.
func TestCutWhileStarting(t *testing.T) {
	each(t, func(t *testing.T, s scenario) {
		if len(s.restarts) == 0 {
			return // it starts nothing
		}
		next := s
		next.config = s.config.with(t, changeKubelet, changeRuntime)
		want := s.undisturbed(t).outcome
		changed := s.machine()
		s.again(t, changed)
		next.again(t, changed)
		cuts := 0
		for _, unit := range units {
			h := s.machine()
			if !s.cutWhileStarting(t, h, unit) {
				continue
			}
			s.again(t, h)
			if d := diff(want, look(h)); d != "" {
				t.Errorf("cut while %s starts: %s", unit, d)
			}
			h = s.machine()
			s.cutWhileStarting(t, h, unit)
			h.Advance(time.Second)
			next.again(t, h)
			if d := diff(withoutJobs(look(changed)), withoutJobs(look(h))); d != "" {
				t.Errorf("cut while %s starts, then another configuration: %s", unit, d)
			}
			cuts++
		}
		if cuts == 0 {
			t.Error("no unit was starting")
		}
	})
}

// A unit whose files were replaced between its start and its being ready may run
// with the old ones: nobody wrote its stamp.
func TestReadyAfterTheFilesChanged(t *testing.T) {
	each(t, func(t *testing.T, s scenario) {
		for _, unit := range units {
			h := s.machine()
			if !s.cutWhileStarting(t, h, unit) {
				continue
			}
			trigger := map[string]string{"containerd.service": "/etc/containerd/config.toml", "kubelet.service": "/etc/default/kubelet"}[unit]
			edit(h, trigger, add(""))
			h.Advance(time.Second)
			check(h.StartUnit(tctx, unit))
			before := len(jobs(h))
			if got := strings.Join(s.plan(t, h), ", "); !strings.Contains(got, "restart unit:"+unit) {
				t.Errorf("%s was ready after its files changed, and the plan is %q", unit, got)
			}
			s.again(t, h)
			if got := jobs(h)[before:]; len(got) == 0 || got[0] != "restart "+unit {
				t.Errorf("%s: jobs %q", unit, got)
			}
		}
	})
}

func withoutJobs(o outcome) outcome {
	return outcome{Tree: maps.Clone(o.Tree), Units: o.Units}
}
