package converge_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
			good, err := h.ReadFile(goodFile)
			must(err)
			kubelet := h.Units()["kubelet.service"].InvocationID
			w := wish{goodWish.Kubelet, c.now}
			_, err = applyApart(t.Context(), t, h, w, &providers{probe: errAway})
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

// applyApart applies what a machine is to be that has lost its kubeconfig: what that
// needs of an API server waits alone.
func applyApart(ctx context.Context, t *testing.T, h *machine, w wish, p converge.Prober, edit ...func(*converge.Trial)) (*converge.Result, error) {
	t.Helper()
	must(h.Remove(kubeconfig))
	once := func(st *desired.State) *desired.State {
		st.Resources[0].(*desired.Check).Unless = desired.ClientCertificateID(kubeconfig)
		return st
	}
	tr := w.trial(t, edit...)
	state := tr.State
	tr.State = func(ctx context.Context, c *trial.Contract) (*desired.State, error) {
		st, err := state(ctx, c)
		return once(st), err
	}
	return engine(h, &providers{}, func(o *converge.Options) { o.Prober, o.Trial = p, tr }).Apply(ctx, once(w.state(t)))
}

// A person still has a word on what could be done without the API server: that one
// was cut off by the change may be why.
func TestConfirmWithoutAPIServer(t *testing.T) {
	within := func(tr *converge.Trial) { tr.Within = 5 * time.Minute }
	w := wish{goodWish.Kubelet, "version = 4\n"}
	start := func(t *testing.T) *machine {
		h := fussy(t)
		res, err := applyApart(t.Context(), t, h, w, &providers{probe: errAway}, within)
		if !errors.Is(err, errAway) || res.Until.IsZero() {
			t.Fatal(res.Until, err)
		}
		if st, err := h.Unit(tctx, "berth-revert.timer"); err != nil || st.ActiveState != "active" {
			t.Fatal(st.ActiveState, err)
		}
		return h
	}
	t.Run("not confirmed", func(t *testing.T) {
		h := start(t)
		if done, err := tried(t, h, wish{}).Revert(t.Context()); err != nil || done == "" {
			t.Fatal(done, err)
		}
		inForce(t, h, goodWish)
	})
	t.Run("confirmed", func(t *testing.T) {
		h := start(t)
		good, err := h.ReadFile(goodFile)
		must(err)
		if _, err := tried(t, h, wish{}).Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(t, h, runtimeToml, w.Containerd)
		has(t, h, goodFile, string(good)) // not all of the new one is in force
		if st, _ := h.Unit(tctx, "berth-revert.timer"); st.ActiveState == "active" {
			t.Error("the timer runs")
		}
	})
}

// What a person confirms is not the change that waited before.
func TestConfirmKeepsNoEarlierChange(t *testing.T) {
	within := func(tr *converge.Trial) { tr.Within = 5 * time.Minute }
	h := fussy(t)
	good, err := h.ReadFile(goodFile)
	must(err)
	if _, err := newWish.apply(t, h, within); err != nil {
		t.Fatal(err)
	}
	w := wish{newWish.Kubelet, "version = 4\n"}
	if res, err := applyApart(t.Context(), t, h, w, &providers{probe: errAway}, within); !errors.Is(err, errAway) || res.Until.IsZero() {
		t.Fatal(res.Until, err)
	}
	if _, err := tried(t, h, wish{}).Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, h, runtimeToml, w.Containerd)
	has(t, h, goodFile, string(good))
}

// deaf is an API server that does not answer: the first to ask it takes all the time that
// there is.
type deaf struct {
	asked func()
	again bool
}

func (d *deaf) Probe(ctx context.Context, _ *desired.Check) error {
	if d.again {
		return errAway
	}
	d.again = true
	d.asked()
	<-ctx.Done()
	return ctx.Err()
}

// timed is a context whose time is over once it is told so.
type timed struct {
	context.Context
	over chan struct{}
}

func (c timed) Done() <-chan struct{} { return c.over }

func (c timed) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A run whose time an API server has taken that does not answer takes nothing back;
// one that is told to stop does.
func TestTimeoutWithoutAPIServer(t *testing.T) {
	w := wish{goodWish.Kubelet, "version = 4\n"}
	t.Run("time is over", func(t *testing.T) {
		h := fussy(t)
		ctx := timed{t.Context(), make(chan struct{})}
		_, err := applyApart(ctx, t, h, w, &deaf{asked: func() { close(ctx.over) }})
		if _, taken := errors.AsType[*converge.TrialError](err); taken || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		has(t, h, runtimeToml, w.Containerd)
	})
	t.Run("told to stop", func(t *testing.T) {
		h := fussy(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := applyApart(ctx, t, h, w, &deaf{asked: cancel})
		if _, taken := errors.AsType[*converge.TrialError](err); !taken {
			t.Error(err)
		}
		has(t, h, runtimeToml, goodWish.Containerd)
	})
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
