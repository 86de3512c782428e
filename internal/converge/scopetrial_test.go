package converge_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// kubeletAlone is a repair of kubelet's configuration.
var kubeletAlone = converge.Scope{IDs: []desired.ID{desired.FileID(flags), desired.UnitID("kubelet.service")}}

// A part of the last good contract brings back what was confirmed: it is no trial, also
// where it starts anew what ran well with something else, and where that fails.
func TestPartOfTheGoodContractIsNoTrial(t *testing.T) {
	for name, c := range map[string]struct {
		breaks bool
		want   []string
	}{
		"repaired":      {false, []string{"restart kubelet.service"}},
		"does not hold": {true, []string{"restart kubelet.service (exit-code)"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			h.Put(flags, "B=by hand\n", 0o600)
			must(h.RestartUnit(tctx, "kubelet.service"))
			if c.breaks {
				h.Behave("kubelet.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: 1} })
			}
			h.ForgetJobs()
			_, err := tried(t, h, goodWish).ApplyScope(t.Context(), goodWish.state(t), kubeletAlone)
			var broken *converge.TrialError
			if errors.As(err, &broken) || (err != nil) != c.breaks {
				t.Fatal(err)
			}
			if got, _ := h.ReadFile(flags); string(got) != goodWish.Kubelet {
				t.Errorf("%q", got)
			}
			if diff := cmp.Diff(c.want, jobsOf(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A part of another contract than the last good one is a trial like all of it: what has
// never been confirmed must not break what runs well.
func TestPartOfAnotherContractIsATrial(t *testing.T) {
	h := fussy(t)
	_, err := tried(t, h, badWish).ApplyScope(t.Context(), badWish.state(t), kubeletAlone)
	var broken *converge.TrialError
	if !errors.As(err, &broken) || broken.Revert != nil {
		t.Fatal(err)
	}
	inForce(t, h, goodWish)
	if _, err := tried(t, h, newWish).ApplyScope(t.Context(), newWish.state(t), kubeletAlone); err != nil {
		t.Fatal(err)
	}
	inForce(t, h, newWish)
}
