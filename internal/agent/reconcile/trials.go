package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const (
	// recheck is after how long it is looked again whether a trial is over.
	recheck = 5 * time.Second
	// otherWait is how long whoever tried a change that was cut off has to go on with it:
	// longer than the resumeWait of its own.
	otherWait = 2 * resumeWait
)

// cutOff is a trial of somebody else that was cut off, and since when it is known.
type cutOff struct{ began, since time.Time }

// yields says whether the machine is left alone, since a change is on trial that is not
// this reconciler's: that of a person until a word is said or the time is over, that of
// another source until its reconciler has gone on with it.
func (r *Reconciler) yields(ctx context.Context) (bool, error) {
	n, err := trial.Load(r.o.Host)
	if isTorn(err) {
		return false, nil // a run ends it
	}
	if err != nil || n == nil {
		return false, err
	}
	own := n.Owner == r.owner
	update := r.o.Published && n.Owner == desired.OwnerBerth
	switch {
	case !n.Waiting:
		return !own && !update && r.defers(n), nil
	case update && r.inForce: // it sees to that itself
		return false, nil
	}
	timed, err := trial.Timed(ctx, r.o.Host)
	if timed && own {
		r.tried(n)
	}
	return timed, err
}

// tried tells of a change that a person tries with this contract.
func (r *Reconciler) tried(n *trial.Note) {
	r.byHandOnce(n.Until.Format(time.RFC3339), fmt.Sprintf("a change that was applied by hand waits to be confirmed, %s, and is left alone as long as it waits", n.Deadline(r.o.Host)))
}

// isOnTrial says whether a run did nothing, since a change waits for a person's word: it
// began to wait when the run waited for its end.
func (r *Reconciler) isOnTrial(err error) bool {
	e, ok := errors.AsType[*converge.OnTrialError](err)
	if ok && e.Note.Owner == r.owner {
		r.tried(e.Note)
	}
	return ok
}

// lockedLong is how long another run may hold the machine's lock before that is told as a
// failure: longer than the longest job of a unit.
const lockedLong = 20 * time.Minute

// isLocked says whether a run did nothing, since another one holds the machine's lock: of
// another source, of a person, of a timer. It ends some time.
func (r *Reconciler) isLocked(err error) bool {
	e, ok := errors.AsType[*host.LockedError](err)
	if !ok {
		r.locked = time.Time{}
		return false
	}
	if r.locked.IsZero() {
		r.locked = time.Now()
		r.o.Log.Warn("another run holds the machine's lock", "error", e)
	}
	return time.Since(r.locked) < lockedLong
}

func isTorn(err error) bool {
	_, ok := errors.AsType[*trial.TornError](err)
	return ok
}

func (r *Reconciler) defers(n *trial.Note) bool {
	if !n.Began.Equal(r.cut.began) {
		r.cut = cutOff{n.Began, time.Now()}
	}
	return time.Since(r.cut.since) < otherWait
}

// byHand tells once of what somebody does with this contract beside the agent.
func (r *Reconciler) byHand(text string) { r.byHandOnce(text, text) }

// byHandOnce is byHand of a text that may be another each time for the same matter.
func (r *Reconciler) byHandOnce(matter, text string) {
	if r.byHandTold == matter {
		return
	}
	r.byHandTold = matter
	r.o.Log.Warn(text)
	r.o.Events.Warning("AppliedByHand", text)
}

// keptAs identifies a last good contract: its document, and the facts of the machine with
// which it is translated. Both are "" where there is none.
type keptAs struct{ sum, facts string }

// known is the last good contract as it was read last.
type known struct {
	keptAs
	at host.Info
}

// keptNow is the last good contract as it is now.
func (r *Reconciler) keptNow() (keptAs, error) {
	at, err := trial.GoodInfo(r.o.Host, r.owner)
	if err != nil || at.Unchanged(r.seenGood.at) {
		return r.seenGood.keptAs, err
	}
	good, err := trial.Good(r.o.Host, r.owner)
	if err != nil {
		return keptAs{}, err
	}
	r.seenGood = known{at: at}
	if good != nil {
		r.seenGood.keptAs = keptAs{good.Sum(), desired.Text(string(good.Facts)).Sum()}
	}
	return r.seenGood.keptAs, nil
}

// another says whether somebody else has put a document of this contract in force.
func (r *Reconciler) another() (bool, error) {
	now, err := r.keptNow()
	return err == nil && now.sum != "" && now.sum != r.good.sum, err
}

// errRenewed is a repair that would have brought back what a timer has just renewed.
var errRenewed = errors.New("what a timer of this machine keeps has been renewed meanwhile")

// renewed says whether the document that the machine is kept as is in force with other
// facts than it came with: what a timer of the machine asks its cloud for is another by now.
// Only AKS documents have such timers.
func (r *Reconciler) renewed() (bool, error) {
	if r.owner != desired.OwnerAKS {
		return false, nil
	}
	now, err := r.keptNow()
	return err == nil && now.sum == r.good.sum && now.sum == r.current.Sum && now.facts != r.good.facts, err
}

// renew keeps the machine from now on as its document says by the facts that a timer has
// renewed, which is what that timer has made of it.
func (r *Reconciler) renew(ctx context.Context) (bool, error) {
	there, err := r.renewed()
	if err != nil || !there {
		return false, err
	}
	last, err := r.o.Opener.LastGood(ctx, r.owner)
	if err != nil || last == nil {
		return false, err
	}
	last.Checksum = r.current.Checksum
	if r.good, err = r.keptNow(); err != nil {
		return false, err
	}
	r.o.Log.Info("what a timer of this machine has renewed is kept from now on")
	r.take(ctx, last)
	return true, nil
}

// stillKept refuses to bring back what was renewed since renew looked: who renews something
// holds the machine's lock meanwhile.
func (r *Reconciler) stillKept() error {
	there, err := r.renewed()
	if err == nil && there {
		err = errRenewed
	}
	return err
}

// undoByHand makes the machine what this agent's document says, as a whole, where
// another one was applied by hand; where repairs rest it only tells.
func (r *Reconciler) undoByHand(ctx context.Context, t *Target, paused bool) error {
	there, err := r.another()
	if err != nil || !there {
		return err
	}
	if paused || r.o.Drift.Policy != config.Repair {
		r.byHand("another document of this contract was applied by hand, and is left alone as long as the agent repairs nothing")
		return nil
	}
	r.byHand("another document of this contract was applied by hand: the agent goes back to its own. To change the machine change that one; " +
		"berth agent pause --for 1h, or drift.policy in " + config.OptionsPath + ", has the agent leave it alone.")
	if _, err = t.Engine.Apply(ctx, t.State); err != nil {
		return err
	}
	r.byHandTold = ""
	r.good, err = r.keptNow()
	return err
}
