package converge_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host/effect"
)

// An anchor that is no longer wanted leaves the bundle too, also where a run was
// cut off between the one and the other.
func TestRemovedAnchorIsDistrusted(t *testing.T) {
	a := anchor(t, "one")
	trusting := func() *machine {
		h := newTrustingMachine()
		if _, err := engine(h, &providers{}).Apply(t.Context(), trustingState(t, a)); err != nil {
			t.Fatal(err)
		}
		h.Flush()
		return h
	}
	counting := effect.Inject(trusting(), nil)
	if _, err := engine(counting, &providers{}).Apply(t.Context(), sampleState(t)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= counting.Count(); n++ {
		h := trusting()
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		if _, err := engine(in, &providers{}).Apply(t.Context(), sampleState(t)); in.Hit() == nil {
			t.Fatalf("effect %d did not happen: %v", n, err)
		}
		h.Kill()
		if _, err := engine(h, &providers{}).Apply(t.Context(), sampleState(t)); err != nil {
			t.Fatal(err)
		}
		if got, err := h.ReadFile(caBundle); err != nil || strings.Contains(string(got), "BEGIN") {
			t.Fatalf("killed at effect %d: the bundle still holds the certificate (%v)", n, err)
		}
		plan, err := engine(h, &providers{}).Plan(t.Context(), sampleState(t))
		if err != nil || !plan.Empty() {
			t.Fatalf("killed at effect %d: left %v, %v", n, verbs(plan), err)
		}
	}
}
