package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const (
	// stayUp is how long a unit must stay up (docs/decisions/0012).
	stayUp = 5 * time.Second
	// confirming is how long the node has to stand as before.
	confirming = time.Minute
)

// nodeError is a node that does not stand as before. It tells the unit's last log lines
// itself.
type nodeError struct{ err error }

// Error implements error.
func (e *nodeError) Error() string { return e.err.Error() }

// Unwrap returns what was seen.
func (e *nodeError) Unwrap() error { return e.err }

// confirm waits for the evidence that the change holds. It fails where a person has no time left
// then: the timer has found this run going on, and does not come again.
func (t *try) confirm(ctx context.Context) error {
	g := &graph{workers: 1, phase: "confirm", now: t.e.opt.Host.Now, tell: t.tell}
	g.nodes = []*node{{id: "trial", verb: "confirm", do: (&evidence{try: t, was: map[string]host.UnitStatus{}}).await}}
	t.touched = true // of a run that found nothing to do, the one before it did
	if err := g.run(ctx); err != nil || t.Within == 0 || t.began.IsZero() || time.Since(t.began) < t.Within {
		return err
	}
	return fmt.Errorf("the %s in which it had to be confirmed were over before it was in force", t.Within)
}

// evidence is what shows that a change holds.
type evidence struct {
	*try
	// was are the units as the change has left them.
	was map[string]host.UnitStatus
}

// answer is what the wait for the node came to.
type answer struct {
	remark string
	err    error
}

// await returns as soon as all evidence is there: every unit has stayed up, and
// the node stands as before. A Node that says it is Ready says so of a kubelet that
// was started after the change, so nothing more is waited for where that alone was.
func (t *evidence) await(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := t.start(ctx); err != nil {
		return err
	}
	events, err := t.e.opt.Host.Watch(ctx, host.Watched{Units: t.note.Units})
	if err != nil {
		return fmt.Errorf("watch units: %w", err)
	}
	stayed, node := make(chan error, 1), make(chan answer, 1)
	go func() { stayed <- Safely(func() error { return t.e.opt.Host.Sleep(ctx, stayUp) }) }()
	go func() { node <- t.awaitNode(ctx) }()
	var seen *answer
	for up := false; !up || seen == nil; {
		select {
		case _, open := <-events:
			if !open {
				events = nil
			}
		case err := <-stayed:
			if err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
			up = true
		case a := <-node:
			if a.err != nil {
				return &nodeError{a.err}
			}
			seen, up = &a, up || t.toldByNode(a)
		}
		if err := t.look(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return context.Cause(ctx) // why nobody waits any more
			}
			return err
		}
	}
	if err := t.isUp(ctx); err != nil {
		return err
	}
	if seen.remark != "" {
		t.res.Plan.Remarks = append(t.res.Plan.Remarks, seen.remark)
	}
	return nil
}

func (t *evidence) awaitNode(ctx context.Context) (a answer) {
	ctx, cancel := context.WithTimeoutCause(ctx, confirming, fmt.Errorf("not confirmed within %s", confirming))
	defer cancel()
	if err := Safely(func() error {
		var err error
		a.remark, err = t.Await(ctx, t.st, t.note.Before)
		return err
	}); err != nil {
		a.err = err
	}
	return a
}

// toldByNode says that the Node's word is evidence enough.
func (t *evidence) toldByNode(a answer) bool {
	return t.note.Before.Ready && a.remark == "" && len(t.note.Units) == 1 && t.note.Units[0] == t.Kubelet
}

// start sees the units as the change has left them.
func (t *evidence) start(ctx context.Context) (err error) {
	for _, name := range t.note.Units {
		if t.was[name], err = t.e.opt.Host.Unit(ctx, name); err != nil {
			return err
		}
	}
	return t.look(ctx)
}

// look fails where a unit has not stayed up.
func (t *evidence) look(ctx context.Context) error {
	for _, name := range t.note.Units {
		st, err := t.e.opt.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if st.ActiveState == "failed" || strings.HasPrefix(st.SubState, "auto-restart") || st.NRestarts > t.was[name].NRestarts {
			return t.didNotStayUp(name, cmp.Or(st.Result, "failed"), st)
		}
	}
	return nil
}

// restarts is how long a unit may be down that somebody restarts just now.
const restarts = time.Second

// isUp fails where a unit that the state needs is down after all. A oneshot service
// that ended well has done what it was to do, and a unit that systemd skips is not to run.
func (t *evidence) isUp(ctx context.Context) error {
	needed := t.e.unitsOf(t.st, kind.Runner.Needed)
	for _, name := range t.note.Units {
		if !slices.Contains(needed, name) {
			continue
		}
		st, err := t.e.opt.Host.Unit(ctx, name)
		if err == nil && ended(st) {
			if err = t.e.opt.Host.Sleep(ctx, restarts); err == nil {
				st, err = t.e.opt.Host.Unit(ctx, name)
			}
		}
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if ended(st) {
			return t.didNotStayUp(name, "ended", st)
		}
	}
	return nil
}

// ended says that a unit is down and was not skipped.
func ended(st host.UnitStatus) bool {
	return st.ActiveState == "inactive" && st.ServiceType != "oneshot" && st.ConditionResult && st.AssertResult
}

func (t *evidence) didNotStayUp(name, result string, st host.UnitStatus) error {
	err := fmt.Errorf("it did not stay up: %w", &host.JobError{Unit: name, Job: "start", Result: result, Status: st})
	a := &ActionError{ID: desired.UnitID(name), Verb: VerbRestart, Err: &UnitError{Unit: name, Err: err}}
	if r := t.st.Lookup(a.ID); r != nil {
		a.Field = r.Order().Field
	}
	return a
}

// NothingOnTrialError says that nothing waits to be confirmed.
type NothingOnTrialError struct{ Why string }

// Error says why.
func (e *NothingOnTrialError) Error() string { return "nothing waits to be confirmed: " + e.Why }

// Confirm is the word that the change on trial is good. It returns whose it is. A
// *NothingOnTrialError says that there is none, or none of the owners that are given.
func (e *Engine) Confirm(ctx context.Context, of ...desired.Owner) (owner desired.Owner, err error) {
	err = e.exclusively(ctx, func() error {
		n, err := trial.Load(e.opt.Host)
		if err != nil {
			return err
		}
		if n == nil {
			return &NothingOnTrialError{"no change is on trial"}
		}
		here, err := n.IsPresent(ctx, e.opt.Host)
		switch {
		case err != nil:
			return err
		case !here:
			return &NothingOnTrialError{"the machine was restarted since, and a restart takes the change back"}
		case !n.Waiting:
			return &NothingOnTrialError{"the run that tried the change was cut off; apply it again"}
		case len(of) > 0 && !slices.Contains(of, n.Owner):
			return &NothingOnTrialError{fmt.Sprintf("the change on trial is of the %s contract", n.Owner)}
		}
		owner = n.Owner
		if err := trial.Promote(e.opt.Host, n.Owner); err != nil {
			return err
		}
		if err := trial.Disarm(context.WithoutCancel(ctx), e.opt.Host, n); err != nil {
			return err
		}
		if err := e.endDrain(ctx, e.outcome(owner, Scope{}, nil)); err != nil {
			return fmt.Errorf("the change is confirmed, and its drain is not at an end: %w", err)
		}
		return nil
	})
	return owner, err
}

// Keep makes a contract that was applied without a trial an owner's last good one,
// when the caller has seen that it is good.
func (e *Engine) Keep(ctx context.Context, owner desired.Owner) error {
	if e.opt.Trial == nil || e.opt.Offline {
		return nil
	}
	return e.exclusively(ctx, func() error { return trial.Keep(e.opt.Host, owner, &e.opt.Trial.Contract) })
}
