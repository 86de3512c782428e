package join

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

// TestLeaveKilledAnywhere: whatever a run was doing when it was killed, the next one
// ends it, and asks nobody twice for what was done.
func TestLeaveKilledAnywhere(t *testing.T) {
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		for at := 1; ; at++ {
			w := newWorld(t)
			w.join(desired.OwnerAKS)
			injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: kind}})
			w.h = injector
			_, _ = w.leave(forced)
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			w.h = w.m
			out, err := w.leave(forced)
			if err != nil || len(out.Stayed) > 0 {
				t.Errorf("killed at %s: %+v, %v", injector.Hit(), out, err)
			}
			w.isAsBefore()
			if n := len(slices.DeleteFunc(slices.Clone(w.log), func(s string) bool { return s != "delete n1 1" })); n == 0 {
				t.Errorf("killed at %s: nobody deleted the Node", injector.Hit())
			}
			if t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	}
}

// TestLeaveAfterAJoinThatWasKilled: what a join found stays known when it was killed and
// pods ran before the next one.
func TestLeaveAfterAJoinThatWasKilled(t *testing.T) {
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		for at := 1; ; at++ {
			w := newWorld(t)
			injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: kind}})
			st := nodeState(t, desired.OwnerAKS)
			_, _ = converge.New(converge.Options{Host: injector, Command: "test", Workers: 1, Providers: converge.Providers{Nodes: nodes{w}}}).Apply(t.Context(), st)
			if injector.Hit() == nil {
				if at < 20 {
					t.Errorf("only %d effects", at)
				}
				break
			}
			if w.active("kubelet.service") {
				w.m.PutFilterNames(ourChain)
			}
			w.join(desired.OwnerAKS)
			if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
			w.isAsBefore()
			if t.Failed() {
				t.Fatalf("killed at %s", injector.Hit())
			}
		}
	}
}

// almostLeft is a machine that a run has left, but for berth's own state.
func almostLeft(t *testing.T) *world {
	t.Helper()
	for at := 1; ; at++ {
		w := newWorld(t)
		w.join(desired.OwnerAKS)
		injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: effect.StopBefore}})
		w.h = injector
		_, _ = w.leave(forced)
		w.h = w.m
		if text, err := w.m.ReadFile(recordPath); err == nil && strings.Contains(string(text), `"done":true`) {
			return w
		}
		if injector.Hit() == nil {
			t.Fatal("there is no such moment")
		}
	}
}

// TestLeaveOfAMachineThatCameBack: where a run that had only berth's own state to remove
// was cut off, and another document made the machine a node since, all of that goes.
func TestLeaveOfAMachineThatCameBack(t *testing.T) {
	w := almostLeft(t)
	j := newJoiner(t)
	j.world = w
	if _, err := j.join(); err == nil || !strings.Contains(err.Error(), "on its way out") {
		t.Errorf("before: %v", err)
	}
	w.join(desired.OwnerAKS)
	if _, err := j.join(); err != nil {
		t.Error(err)
	}
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
}
