package reconcile

import (
	"context"
	"errors"
	"strings"

	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
)

// prove is this agent's word that it does its work, where it has yet to give it: it has
// reached the API server, and can make a plan of the document for this machine.
func (r *Reconciler) prove(ctx context.Context, d *Document) error {
	onTrial, err := r.o.Self.OnTrial(ctx)
	if err != nil || !onTrial {
		return err
	}
	t := r.current
	if t == nil {
		if t, err = r.o.Opener.Open(ctx, d); err != nil {
			return err
		}
	}
	if p, err := t.Engine.Plan(ctx, t.State); p == nil {
		return err
	}
	return r.o.Self.Prove(ctx)
}

// update puts the agent of the document in force in this one's place, when all else is.
// The Node says that the document is in force when the agent is its own, or is kept out;
// one that fell back is told instead.
func (r *Reconciler) update(ctx context.Context) error {
	t := r.current
	if r.updated {
		return r.restAfter(ctx)
	}
	ends, err := r.o.Self.Update(ctx, t.Agent, t.Checksum)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.tell(updating, err)
		if _, final := errors.AsType[*selfupdate.FellBackError](err); !final {
			return err
		}
		r.updated = true
		return r.restAfter(ctx)
	}
	if ends {
		return nil
	}
	r.updated = true
	r.settled(updating)
	r.markInForce(t)
	return r.rest(ctx)
}

// updateBeside is update of a document that failed when its files were in place: a unit
// that does not start keeps no agent from coming, which may be the one that mends it.
func (r *Reconciler) updateBeside(ctx context.Context, t *Target, failure error) error {
	failed, ok := errors.AsType[*converge.ActionError](failure)
	if t.Agent == nil || r.current != t || r.inForce || !ok || !strings.HasPrefix(string(failed.ID), "unit:") {
		return nil
	}
	if _, err := r.o.Self.Update(ctx, t.Agent, t.Checksum); err != nil && ctx.Err() == nil {
		r.tell(updating, err)
		if _, final := errors.AsType[*selfupdate.FellBackError](err); !final {
			return err
		}
	}
	return nil
}

// restAfter is rest after an update that came to its end. With an agent that fell back
// the turn stays: it would fail on the next machine, too.
func (r *Reconciler) restAfter(ctx context.Context) error {
	if _, fell := r.said[updating]; fell {
		r.settled(applying)
		return nil
	}
	return r.rest(ctx)
}

// markInForce has the Node say that a document is in force.
func (r *Reconciler) markInForce(t *Target) {
	r.show(func(f *face) { f.checksum, f.labels, f.former = t.Checksum, r.o.Marks(t), nil })
}
