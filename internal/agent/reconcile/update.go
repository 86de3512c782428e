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
	ends, err := r.updateInTurn(ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waitsForTurn(err) {
		return err
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
	r.setInForce(t)
	return r.rest(ctx)
}

// updateBeside is update of a document that failed when its files were in place: a unit
// that does not start keeps no agent from coming, which may be the one that mends it.
func (r *Reconciler) updateBeside(ctx context.Context, t *Target, failure error) error {
	failed, ok := errors.AsType[*converge.ActionError](failure)
	if t.Agent == nil || r.current != t || r.inForce || !ok || !strings.HasPrefix(string(failed.ID), "unit:") {
		return nil
	}
	if _, err := r.updateInTurn(ctx, t); err != nil && ctx.Err() == nil {
		if waitsForTurn(err) {
			return nil // the document comes again, and its agent with it
		}
		r.tell(updating, err)
		if _, final := errors.AsType[*selfupdate.FellBackError](err); !final {
			return err
		}
	}
	return nil
}

// updateInTurn is Update of an agent whose turn it is. The document may have had its turn
// long ago: what fetches the agent may fail for hours, and a turn can be lost meanwhile. It
// is asked for again before the agent is fetched, and once more before it is put in place.
// From then on the turn is kept: this process says nothing that it is over, the Lease counts
// on while the new agent comes up, and whichever agent runs then renews it, until the
// document is in force with its agent or that one is kept out. One that fell back keeps it.
func (r *Reconciler) updateInTurn(ctx context.Context, t *Target) (ends bool, err error) {
	turn := ctx
	if t.Agent != nil && t.Serial {
		if turn = r.o.Turns.Acquire(ctx); turn == nil {
			r.o.Log.Info("the agent of the document waits for this machine's turn", "checksum", t.Checksum)
			return false, errWaits
		}
	}
	ends, err = r.o.Self.Update(ctx, t.Agent, t.Checksum, func() error {
		if turn.Err() != nil {
			return errTurnLost
		}
		return nil
	})
	if ctx.Err() == nil && errors.Is(err, errTurnLost) {
		r.o.Log.Warn("the turn is over before the agent of the document is in place: it waits again", "checksum", t.Checksum)
		r.queue.Add(workDocument)
		return false, errWaits
	}
	return ends, err
}

// waitsForTurn says of an update that it goes on with this machine's turn.
func waitsForTurn(err error) bool { return errors.Is(err, errWaits) }

// restAfter is rest after an update that came to its end. With an agent that fell back
// the turn stays, and is waited for anew when it was lost: it would fail on the next machine,
// too.
func (r *Reconciler) restAfter(ctx context.Context) error {
	if _, fell := r.said[updating]; fell {
		if r.current.Serial {
			r.o.Turns.Acquire(ctx)
		}
		r.settled(applying)
		return nil
	}
	return r.rest(ctx)
}

// setInForce has the Node say that a document is in force.
func (r *Reconciler) setInForce(t *Target) {
	r.setStatus(func(s *nodeStatus) { s.checksum, s.labels, s.former = t.Checksum, r.o.Labels(t), nil })
}
