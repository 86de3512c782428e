package converge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// An API server that is away takes nothing back: what could be done without it stays
// if it holds, and goes if it does not. Not all of the contract is in force then, so
// the last good one stays what it was.
func TestTrialWithoutAPIServer(t *testing.T) {
	for name, c := range map[string]struct{ now, in string }{
		"holds": {"version = 4\n", "version = 4\n"},
		"bad":   {"bad\n", "version = 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := fussy(t)
			must(h.Remove(kubeconfig))
			w := wish{goodWish.Kubelet, c.now}
			once := func(st *desired.State) *desired.State {
				st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
				return st
			}
			good, err := h.ReadFile(goodFile)
			must(err)
			kubelet := h.Units()["kubelet.service"].InvocationID

			var trials *converge.Trial
			tried(t, h, w, func(tr *converge.Trial) { trials = tr })
			state := trials.State
			trials.State = func(ctx context.Context, c *trial.Contract) (*desired.State, error) {
				st, err := state(ctx, c)
				return once(st), err
			}
			_, err = engine(h, &providers{probe: errAway}, func(o *converge.Options) { o.Trial = trials }).Apply(t.Context(), once(w.state(t)))
			trialErr, taken := errors.AsType[*converge.TrialError](err)
			if !errors.Is(err, errAway) || taken != (name == "bad") {
				t.Errorf("%v (%v)", err, trialErr)
			}
			has(t, h, runtimeToml, c.in)
			u := h.Units()
			if u["containerd.service"].ActiveState != "active" || u["kubelet.service"].InvocationID != kubelet {
				t.Errorf("containerd is %s, kubelet %s", u["containerd.service"].ActiveState, u["kubelet.service"].ActiveState)
			}
			has(t, h, goodFile, string(good))
			if name == "bad" {
				return
			}
			if _, err := h.Lstat(noteFile); err == nil {
				t.Error("the trial goes on")
			}
			if _, err := w.apply(t, h); err != nil {
				t.Error(err)
			}
			if now, _ := h.ReadFile(goodFile); string(now) == string(good) {
				t.Error("the last good contract is the old one")
			}
		})
	}
}

// A repair of which a part was withheld says nothing about its contract: the last
// good one stays what it was.
func TestWithheldIsNotGood(t *testing.T) {
	h := fussy(t)
	good, err := h.ReadFile(goodFile)
	must(err)
	w := wish{goodWish.Kubelet, "version = 4\n"}
	var trials *converge.Trial
	tried(t, h, w, func(tr *converge.Trial) { trials = tr })
	report := func(converge.Action) converge.Decision { return converge.Report }
	e := engine(h, &providers{}, func(o *converge.Options) { o.Trial = trials })
	if res, err := e.ApplyScope(t.Context(), w.state(t), converge.Scope{Decide: report}); err != nil || len(res.Plan.Reported) == 0 {
		t.Fatalf("%+v, %v", res.Plan, err)
	}
	has(t, h, goodFile, string(good))
}
