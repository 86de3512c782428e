package join

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/host/podnet"
)

const revertService = "berth-revert.service"

// onTrial is a machine on which somebody has to confirm a change: reverts counts how often
// systemd calls the way back, which fails.
func onTrial(t *testing.T) (w *world, reverts *int) {
	t.Helper()
	w, reverts = newWorld(t), new(int)
	w.m.Program("/usr/bin/berth", func(host.Command) host.Output { *reverts++; return host.Output{ExitCode: 1} })
	w.m.PutDir("/etc/systemd/system/multi-user.target.wants")
	w.before = w.tree()
	w.join(desired.OwnerAKS)
	n, err := trial.Begun(t.Context(), w.m)
	if err != nil {
		t.Fatal(err)
	}
	n.Owner, n.Units, n.Waiting, n.Until = desired.OwnerAKS, []string{"kubelet.service"}, true, n.Began.Add(5*time.Minute)
	for _, err := range []error{
		trial.Keep(w.m, desired.OwnerAKS, &trial.Contract{Document: []byte("good")}),
		trial.Arm(w.m, n, "/usr/bin/berth", nil), trial.ArmTimer(t.Context(), w.m, "/usr/bin/berth", 5*time.Minute),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w, reverts
}

// slowNetwork takes longer than anybody has to confirm a change.
type slowNetwork struct{ network }

// Remove implements the network of Options.
func (n slowNetwork) Remove(ctx context.Context, before podnet.Before) ([]string, error) {
	if err := n.m.Sleep(ctx, time.Hour); err != nil {
		return nil, err
	}
	return n.network.Remove(ctx, before)
}

func slowly(w *world) func(*Options) {
	return func(o *Options) {
		forced(o)
		o.Network = slowNetwork{network{w}}
	}
}

// TestLeaveWhileOnTrial: nobody goes back to the last good configuration while the machine is
// taken out of its cluster, whether the time to confirm the change is over or not.
func TestLeaveWhileOnTrial(t *testing.T) {
	for name, before := range map[string]func(*world){
		"in time": func(*world) {},
		"the way back failed and is tried again": func(w *world) {
			if err := w.m.StartUnit(w.t.Context(), revertService); err == nil {
				w.t.Fatal("the way back did not fail")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, reverts := onTrial(t)
			before(w)
			had := *reverts
			if out, err := w.leave(slowly(w)); err != nil || len(out.Stayed) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
			if *reverts > had {
				t.Errorf("%d ways back began meanwhile", *reverts-had)
			}
			w.isAsBefore()
		})
	}
}

// A way back that goes on ends: it would start what the run stops.
func TestLeaveEndsAWayBackThatGoesOn(t *testing.T) {
	w, _ := onTrial(t)
	w.m.Behave(revertService, func(memory.Start) memory.Outcome { return memory.Outcome{Hang: true} })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	_ = w.m.StartUnit(ctx, revertService) // as the timer does
	cancel()
	if !w.goesOn(revertService) {
		t.Fatal("it does not go on")
	}
	said := func(string) {
		if w.goesOn(revertService) {
			t.Error("it goes on")
		}
	}
	if out, err := w.leave(forced, func(o *Options) { o.Say = said }); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	w.isAsBefore()
}

func (w *world) goesOn(unit string) bool {
	st, err := w.m.Unit(w.t.Context(), unit)
	return err == nil && st.ActiveState == "activating"
}

// TestLeaveWhileOnTrialKilledAnywhere: the next run ends the wait, and the trial, where one
// that was killed did not.
func TestLeaveWhileOnTrialKilledAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		w, reverts := onTrial(t)
		injector := effect.Inject(w.m, effect.Plan{{At: at, Kind: effect.StopBefore}})
		w.h = injector
		_, _ = w.leave(forced)
		if injector.Hit() == nil {
			break
		}
		w.h = w.m
		if out, err := w.leave(slowly(w)); err != nil || len(out.Stayed) > 0 || *reverts > 0 {
			t.Fatalf("killed at %s: %+v, %v, %d ways back", injector.Hit(), out, err, *reverts)
		}
		w.isAsBefore()
		if t.Failed() {
			t.Fatalf("killed at %s", injector.Hit())
		}
	}
}
