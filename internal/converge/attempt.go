package converge

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// attempt is one run of Apply: a state, what of it is looked at, and what has come of it.
type attempt struct {
	e     *Engine
	st    *desired.State
	scope Scope
	res   *Result
	// try is the run as a trial; nil where it is none.
	try  *try
	told sync.Mutex
}

// locked is a run with all that a trial adds to it. What nothing is asked of any
// more has no contract.
func (a *attempt) locked(ctx context.Context) error {
	if a.scope.IDs != nil {
		alone, err := a.partAlone()
		if err != nil {
			return err
		}
		if alone {
			return a.apply(ctx, false)
		}
		a.scope.IDs = nil
	}
	e := a.e
	defer func() { e.way.Kept = nil }() // they are for this run
	err := a.newTry(ctx)
	if err != nil {
		return err
	}
	ends := len(a.st.Resources) == 0 && !e.opt.Offline
	if ends && a.try == nil { // where nobody goes back, the next boot does not either
		if err := e.forget(ctx, a.st.Owner); err != nil {
			return err
		}
	}
	err = Safely(func() error { return a.apply(ctx, false) })
	if err == nil && ends && a.try != nil {
		return e.forget(ctx, a.st.Owner)
	}
	return a.try.end(ctx, err)
}

// partAlone says whether a part may be looked at by itself, without a trial: nothing is on
// trial, and the contract is the last good one, or there is none. Then what a part brings
// back is what was confirmed, and there is nothing better to go back to.
func (a *attempt) partAlone() (bool, error) {
	e := a.e
	n, err := trial.Load(e.opt.Host)
	if n != nil || isTorn(err) {
		return false, nil
	}
	if err != nil || e.opt.Trial == nil || e.opt.Offline {
		return err == nil, err
	}
	other, _, err := e.known.Good(e.opt.Host, a.st.Owner, &e.opt.Trial.Contract)
	return other == nil, err
}

// apply brings the machine to the state. What waits for the API server comes apart, once.
func (a *attempt) apply(ctx context.Context, parted bool) error {
	led, err := a.e.ledger.Load(a.e.opt.Host)
	if err != nil {
		return err
	}
	if led.Owed != nil {
		a.res.Resumed, a.scope.IDs = true, nil
		if err := led.Owed.Clear(a.e.opt.Host); err != nil {
			return err
		}
	}
	p, err := a.e.plan(ctx, a.st, led, a.scope)
	if err != nil {
		return err
	}
	before := a.res.Plan.Remarks
	a.res.Plan = p.public()
	a.res.Plan.Remarks = append(a.res.Plan.Remarks, before...)
	if err := p.blocked(); err != nil {
		return err
	}
	if waiting := p.waiting(); len(waiting) > 0 && !parted {
		return a.apart(ctx, p, waiting)
	}
	return a.execute(ctx, p)
}

func (a *attempt) execute(ctx context.Context, p *planner) error {
	x := &executor{attempt: a, tree: newTree(&record{planner: p})}
	return x.execute(ctx)
}

// tell notes what has ended, and tells the observer.
func (a *attempt) tell(s Span) {
	a.told.Lock()
	defer a.told.Unlock()
	if !s.End.IsZero() {
		a.res.Timeline = append(a.res.Timeline, s)
	}
	if a.e.opt.Observer != nil {
		a.e.opt.Observer(s)
	}
}
