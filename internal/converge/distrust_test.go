package converge_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
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

// Nothing stays trusted that no document wants, also where a run that replaced an anchor was cut
// off, and the next one was another owner's.
func TestCutOffAnchorIsDistrusted(t *testing.T) {
	one, two := anchor(t, "ca"), anchor(t, "ca")
	for n, hit := 1, true; hit; n += stride {
		h := newTrustingMachine()
		runs(t, h, sealed(t, one))
		in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), sealed(t, two))
		hit = in.Hit() != nil
		h.Kill()
		runs(t, h, of(desired.OwnerOSC, sealed(t, managed("/etc/other", "1"))))
		runs(t, h, sealed(t))
		if got, err := h.ReadFile(caBundle); err != nil || len(got) > 0 {
			t.Errorf("killed at effect %d (%v): the bundle holds %q, %v", n, in.Hit(), got, err)
		}
	}
}

// Nothing stays trusted either where a run that took an anchor over from another owner was cut
// off, and then nobody wants it.
func TestCutOffTakenAnchorIsDistrusted(t *testing.T) {
	one, two := anchor(t, "ca"), anchor(t, "ca")
	orders := [][]desired.Owner{{desired.OwnerAKS, desired.OwnerOSC}, {desired.OwnerOSC, desired.OwnerAKS}}
	for _, order := range orders {
		for n, hit := 1, true; hit; n++ {
			h := newTrustingMachine()
			runs(t, h, sealed(t, one))
			in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			_, _ = engine(in, &providers{}, func(o *converge.Options) { o.TakeOver = true }).Apply(t.Context(), of(desired.OwnerOSC, sealed(t, two)))
			hit = in.Hit() != nil
			h.Kill()
			for _, o := range order {
				runs(t, h, of(o, sealed(t)))
			}
			if got, err := h.ReadFile(caBundle); err != nil || len(got) > 0 {
				t.Errorf("killed at effect %d (%v), %v: the bundle holds %q, %v", n, in.Hit(), order, got, err)
			}
		}
	}
}
