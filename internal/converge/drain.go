package converge

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Drainer empties the node for the time of a change that its pods should not see.
type Drainer interface {
	// Drain comes once all is fetched and unpacked, before the first change shows.
	// Where it fails, nothing has changed.
	Drain(ctx context.Context, d Disturbance) error
	// Restore ends, after a run, what a Drain of it or of an earlier one began.
	// Where the node does not stand as before it is told so.
	Restore(ctx context.Context, broken bool) error
}

// Disturbance is what a run does to what runs.
type Disturbance struct {
	// Units are started anew.
	Units []string
	// Changes says whether a path changes.
	Changes func(path string) bool
}

// drain empties the node where the caller wants it for what this run does.
func (x *executor) drain(ctx context.Context) error {
	if x.opt.Drainer == nil || x.opt.Offline {
		return nil
	}
	d := Disturbance{Changes: x.v.Changes}
	for _, t := range x.v.Tasks() {
		d.Units = append(d.Units, t.Revive...)
		if name, ok := strings.CutPrefix(string(t.ID), "unit:"); ok && startsAnew(t) {
			d.Units = append(d.Units, name)
		}
	}
	slices.Sort(d.Units)
	return x.opt.Drainer.Drain(ctx, d)
}

// restore ends the drain of a run. One that was told to stop has gone back by then.
func (e *Engine) restore(ctx context.Context, err error) error {
	if e.opt.Drainer == nil || e.opt.Offline {
		return err
	}
	broken := e.broken(err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reverting)
	defer cancel()
	return errors.Join(err, e.opt.Drainer.Restore(ctx, broken))
}

// broken says whether a run has left the machine as it should not be: what failed was
// not taken back, or a part of it is still to be done.
func (e *Engine) broken(err error) bool {
	if err == nil {
		return false
	}
	if failed, ok := errors.AsType[*TrialError](err); ok && (failed.Revert != nil || len(failed.Foreign) > 0) {
		return true
	}
	led, unread := e.ledger.Load(e.opt.Host)
	return unread != nil || led.Owed != nil
}
