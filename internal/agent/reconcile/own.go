package reconcile

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
)

// ownDrift brings back what others changed of the agent's own link, unit and drop-ins, as
// far as that is wanted. It starts nothing: what runs was started by what comes back.
func (r *Reconciler) ownDrift(ctx context.Context) error {
	own, err := r.o.Self.Own()
	if err != nil || own == nil {
		return err
	}
	paused := r.o.Paused().After(r.o.Host.Now())
	s := converge.Scope{IDs: selfupdate.OwnIDs(own), Decide: r.decide(own, paused)}
	res, err := r.o.Self.Repair(ctx, own, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.stopStorms(res.Begun)
	r.report(res.Begun, res.Plan.Reported, nil, r.ownLeft)
	switch {
	case r.isOnTrial(err), r.isLocked(err), r.isStillWritten(err):
		r.queue.AddAfter(workOwn, recheck)
		return nil
	case err != nil:
		r.tell(keeping, err)
		return err
	}
	r.settled(keeping)
	return nil
}

// ownNames are the names that show such drift.
func (r *Reconciler) ownNames() map[string]bool {
	names := map[string]bool{}
	own, err := r.o.Self.Own()
	if err != nil || own == nil {
		return names // it is looked at with all the rest
	}
	for _, id := range selfupdate.OwnIDs(own) {
		for _, p := range own.Lookup(id).FilePaths() {
			names[p] = true
		}
	}
	return names
}
