package converge

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// Drainer empties the node for the time of a change that its pods should not see.
type Drainer interface {
	// Drain comes once all is fetched and unpacked, before the first change shows.
	// Where it fails, nothing has changed.
	Drain(ctx context.Context, d Disturbance) error
	// Restore ends, after a run, what a Drain of it or of an earlier one began, by how
	// the run has left the node.
	Restore(ctx context.Context, o Outcome) error
}

// Outcome is how a run has left the node.
type Outcome int

// The outcomes.
const (
	// Unchanged: nothing was changed, or only a part was looked at: it stands or is broken
	// as it was before.
	Unchanged Outcome = iota
	// Stands: all that is asked for is in force, or the last good configuration again.
	Stands
	// Broken: what failed was not taken back, or a part of it is still to be done.
	Broken
	// Returned: the last good configuration is there again and stands once systemd has
	// started its units; nobody can be asked yet.
	Returned
)

// Disturbance is what a run does to what runs.
type Disturbance struct {
	// Units are started anew.
	Units []string
	// Changes says whether a path changes; Repairs that it is to hold what it was asked
	// to hold before.
	Changes, Repairs func(path string) bool
}

// drain empties the node where the caller wants it for what this run does.
func (x *executor) drain(ctx context.Context) error {
	if x.opt.Drainer == nil || x.opt.Offline {
		return nil
	}
	d := Disturbance{Changes: x.v.Changes, Repairs: x.repairs}
	for _, t := range x.v.Tasks() {
		d.Units = append(d.Units, x.startedAnew(t)...)
	}
	slices.Sort(d.Units)
	return x.opt.Drainer.Drain(ctx, d)
}

// repairs says whether this owner asks for nothing else at a path than before.
func (x *executor) repairs(p string) bool {
	q, e := x.v.Expected(p), x.v.Ledger.Entries[p]
	have, owns := e.Owners[x.v.State.Owner]
	switch {
	case q == nil || !owns:
		return false
	case q.Type == ledger.Link:
		return e.Applied.Type == ledger.Link && e.Applied.Target == q.Target
	case q.Asked != "":
		return have == q.Asked
	}
	return e.Applied.Sum != "" && e.Applied.Sum == q.Sum()
}

// restore ends the drain of a run. One that was told to stop has gone back by then, and
// one whose change waits for a person's word ends with that.
func (e *Engine) restore(ctx context.Context, owner desired.Owner, s Scope, err error) error {
	if e.opt.Drainer == nil || e.opt.Offline || e.waits() {
		return err
	}
	return errors.Join(err, e.endDrain(ctx, e.outcome(owner, s, err)))
}

func (e *Engine) endDrain(ctx context.Context, o Outcome) error {
	if e.opt.Drainer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reverting)
	defer cancel()
	return e.opt.Drainer.Restore(ctx, o)
}

// EndDrain ends the drain of a change that a restart of the machine took back. One that is
// on trial since then ends it itself.
func (e *Engine) EndDrain(ctx context.Context) error {
	return e.exclusively(ctx, func() error {
		if n, err := trial.Load(e.opt.Host); err != nil || n != nil {
			return err
		}
		return e.endDrain(ctx, Stands)
	})
}

// waits says that a change waits for a person's word. What can't be read is no reason.
func (e *Engine) waits() bool {
	n, err := trial.Load(e.opt.Host)
	return err == nil && n != nil && n.Waiting
}

// outcome is how a run of an owner's state has left the node. The state of berth's own
// program says nothing of it.
func (e *Engine) outcome(o desired.Owner, s Scope, err error) Outcome {
	if err == nil {
		if o == desired.OwnerBerth || s.IDs != nil || s.Decide != nil {
			return Unchanged
		}
		return Stands
	}
	failed, tried := errors.AsType[*TrialError](err)
	if _, beside := errors.AsType[*BesideError](err); beside && !tried && o != desired.OwnerBerth {
		return Stands
	}
	if tried && (failed.Revert != nil || len(failed.Foreign) > 0) {
		return Broken
	}
	if led, unread := e.ledger.Load(e.opt.Host); unread != nil || led.Owed != nil {
		return Broken
	}
	if tried && o != desired.OwnerBerth {
		return Stands
	}
	return Unchanged
}
