package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/agent/status"
	"github.com/berth-dev/berth/internal/converge"
)

// document brings the machine to the document that came last, when its time has
// come.
func (r *Reconciler) document(ctx context.Context) error {
	r.mu.Lock()
	d := r.wanted
	r.mu.Unlock()
	if d == nil {
		return nil
	}
	other, err := r.ownerOf(d)
	if err != nil {
		return err
	}
	if err := r.prove(ctx, d); err != nil {
		return err
	}
	if yields, err := r.yields(ctx); err != nil || yields {
		r.queue.AddAfter(workDocument, recheck)
		return err
	}
	if r.inForce && d.same(r.current.Document) {
		r.current.Document = d // whether the pool goes one after another may have changed
		r.see(d)               // one that waited before waits anew when it is asked for again
		return errors.Join(r.forgive(), r.update(ctx))
	}
	r.see(d)
	if other != "" {
		return r.failed(ctx, d, kindChanged(r.owner, other))
	}
	if r.record.Reverted == d.Checksum {
		if d.Serial { // it would break the next machine, too: also after a restart of the agent
			r.o.Turns.Acquire(ctx)
		}
		return nil
	}
	if wait := r.wait(d); wait > 0 {
		r.o.Log.Info("a new document waits", "checksum", d.Checksum, "for", wait.Round(time.Second).String())
		r.queue.AddAfter(workDocument, wait)
		return r.change(r.record)
	}
	turn := ctx
	if d.Serial {
		if turn = r.o.Turns.Acquire(ctx); turn == nil {
			r.o.Log.Info("a new document waits for this machine's turn", "checksum", d.Checksum)
			return errWaits
		}
	}
	return r.inTurn(ctx, turn, d)
}

// forgive has a document that was taken back tried again when it is asked for again: another
// one has been asked for since.
func (r *Reconciler) forgive() error {
	return r.change(r.record.forgiven())
}

// wait is how long it is until a document is due. A machine that has none takes the
// first at once, and what is in force already is looked at at once. That it is the Node
// may say alone: what berth remembers may be of another time.
func (r *Reconciler) wait(d *Document) time.Duration {
	if r.current == nil || d.Serial || r.current.Sum == d.Sum {
		return 0
	}
	if n := r.o.Node.Get(); r.o.Published && n != nil && n.Annotations[AppliedAnnotation] == d.Checksum {
		return 0
	}
	return r.record.SeenAt.Add(r.o.Delay(d.Checksum)).Sub(r.o.Host.Now())
}

// errTurnLost is a turn that was over before anything had changed.
var errTurnLost = errors.New("this machine's turn is over")

// inTurn applies a document while the turn lasts. A turn that is lost ends what goes on as
// long as nothing has changed: another machine may work by now, and this one waits anew. What
// has begun to change is brought to its end: half a document is worse than two machines at
// a time.
func (r *Reconciler) inTurn(ctx, turn context.Context, d *Document) error {
	until, end := context.WithCancelCause(ctx)
	defer end(nil)
	lasts := context.AfterFunc(turn, func() { end(errTurnLost) })
	defer lasts()
	err := r.apply(ctx, until, sync.OnceValue(func() error {
		if !lasts() {
			end(errTurnLost)
			return errTurnLost
		}
		return nil
	}), d)
	if ctx.Err() == nil && errors.Is(context.Cause(until), errTurnLost) {
		r.o.Log.Warn("the turn is over before anything has changed: the document waits again", "checksum", d.Checksum)
		r.queue.Add(workDocument)
		return nil
	}
	return err
}

// apply brings the machine to a document. until is its context as long as ready was not
// asked, with which the first change begins.
func (r *Reconciler) apply(ctx, until context.Context, ready func() error, d *Document) error {
	defer r.o.Release(len(d.Text))
	r.inherit(ctx)
	t, err := r.o.Opener.Open(until, d)
	if until.Err() != nil {
		return until.Err()
	}
	if err != nil {
		return r.failed(ctx, d, err)
	}
	r.tellNotes(t.Notes)
	before, err := r.noteOwner()
	if err != nil {
		return r.failed(ctx, d, err)
	}
	if err := r.o.Self.Claim(ctx, t.Agent); err != nil {
		return r.failed(ctx, d, errors.Join(err, r.unnoteOwner(before)))
	}
	r.o.Ahead(until, t.State)
	began := r.o.Host.Now()
	res, err := t.Engine.ApplyScope(until, t.State, converge.Scope{Ready: ready, Live: r.early(t)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if until.Err() != nil {
		return errors.Join(until.Err(), r.unnoteOwner(before))
	}
	r.tellJobs(res, err)
	if err != nil {
		r.sayFormer()
		if err := r.unnoteOwner(before); err != nil {
			r.o.Log.Warn("the kind of a document that has left nothing is still noted", "error", err)
		}
	}
	if r.isOnTrial(err) || r.isLocked(err) {
		r.queue.AddAfter(workDocument, recheck)
		return nil
	}
	if err != nil {
		r.halfway(ctx, t, res, err)
		r.deny(ctx, d)
		err = r.failed(ctx, d, err)
		if isBlocked(res) {
			err = errors.Join(err, r.giveOn(ctx))
		}
		return errors.Join(err, r.updateBeside(ctx, t, err))
	}
	r.o.Log.Info("a document is in force", "checksum", d.Checksum, "changes", len(res.Plan.Actions), "took", r.o.Host.Now().Sub(began).String())
	if t.Agent == nil {
		r.setInForce(t)
	}
	r.take(ctx, t)
	r.inForce = false // until it is noted
	next := r.record.forgiven()
	next.Sum, next.Checksum, next.Half = d.Sum, d.Checksum, false
	if err := r.change(next); err != nil {
		return err
	}
	if r.good, err = r.keptNow(); err != nil {
		return err
	}
	r.inForce, r.updated = true, false
	delete(r.said, updating)  // of another document
	delete(r.said, repairing) // all is as this one says
	if r.record.Inherited {
		r.disinherit()
	}
	r.o.Count(status.Applied, 1)
	r.queue.AddAfter(workAll, r.o.SyncPeriod)
	if err := t.Engine.Remember(ctx, t.State); err != nil {
		r.o.Log.Warn("left for the next run", "error", err)
	}
	return r.update(ctx)
}

// tellNotes tells what of a document has no effect: nobody but the cluster's people can mend
// that, and they see events and no log. What was said last is not said again.
func (r *Reconciler) tellNotes(notes []string) {
	for _, n := range notes {
		r.o.Log.Info("of the document", "note", n)
	}
	if said := strings.Join(notes, "; "); said != r.noted {
		if r.noted = said; said != "" {
			r.o.Events.Normal("OSCNotes", said)
		}
	}
}

// rest ends what was begun for a document that is no longer asked for, or is in
// force by now: nothing is left to say of applying, nor to take a turn for.
func (r *Reconciler) rest(ctx context.Context) error {
	r.settled(applying)
	return r.o.Turns.Release(ctx)
}

// take makes a target the one that the machine is kept as.
func (r *Reconciler) take(ctx context.Context, t *Target) {
	r.current = t
	r.kept.Set(t.State)
	r.listen(ctx)
}

// halfway is after a document that failed. Where it changed something and was not
// taken back, what it asks for is in force as far as it came: so it is where to go back
// would not help. Where the way back failed, a repair goes on with it.
func (r *Reconciler) halfway(ctx context.Context, t *Target, res *converge.Result, err error) {
	broken, tried := errors.AsType[*converge.TrialError](err)
	if !tried && !hasChanged(res) {
		return
	}
	if tried && isBack(broken) {
		r.wentBack(ctx, broken)
		return
	}
	if r.noteHalf(true); tried && broken.Revert != nil {
		return
	}
	r.inForce = false
	r.take(ctx, t)
}

// noteHalf remembers that a document has changed the machine and is neither in force nor
// taken back, also over a restart.
func (r *Reconciler) noteHalf(half bool) {
	next := r.record
	next.Half = half
	if err := r.change(next); err != nil {
		r.record = next
		r.o.Log.Warn("a restart would forget that a document came half-way", "error", err)
	}
}

// hasChanged says whether a run has begun to change the machine.
func hasChanged(res *converge.Result) bool {
	return slices.ContainsFunc(res.Timeline, func(s converge.Span) bool { return s.Phase == "commit" })
}

// isBlocked says whether a run was refused by its plan, and changed nothing.
func isBlocked(res *converge.Result) bool {
	return res.Plan != nil && !hasChanged(res) && slices.ContainsFunc(res.Plan.Actions, func(a converge.Action) bool { return a.Blocked != "" })
}

// wentBack is after a document that was taken back: the last good one is in force
// again, also where another one had come half-way before.
func (r *Reconciler) wentBack(ctx context.Context, t *converge.TrialError) {
	if !isBack(t) {
		return
	}
	r.noteHalf(false)
	if r.inForce {
		return
	}
	if last := r.lastGood(ctx); last != nil {
		r.take(ctx, last)
	}
}

// failed tells of a document that is not in force. What was refused or taken back
// is not tried again until it changes. Refused, it has changed nothing and gives the
// turn on; taken back, it keeps the turn: it would break the next machine, too.
func (r *Reconciler) failed(ctx context.Context, d *Document, err error) error {
	r.o.Count(status.Failed, 1)
	r.tell(applying, err)
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return r.giveOn(ctx)
	}
	t, ok := errors.AsType[*converge.TrialError](err)
	if !ok || !isBack(t) {
		return err
	}
	next := r.record
	next.Reverted, next.Why = d.Checksum, r.said[applying]
	return r.change(next)
}

// giveOn gives the turn on after a document that has changed nothing. A machine that
// an earlier one has left half-way keeps it: that one would do so to the next, too.
func (r *Reconciler) giveOn(ctx context.Context) error {
	if r.record.Half {
		return nil
	}
	return r.o.Turns.Release(ctx)
}

// isBack says whether what broke was taken back.
func isBack(t *converge.TrialError) bool { return t.Revert == nil && len(t.Foreign) == 0 }
