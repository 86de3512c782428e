package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Trial is what the engine must know to try a change: to see that it holds, and to
// go back where it does not. All functions are required.
type Trial struct {
	// Contract is what the state that Apply gets was translated from.
	Contract trial.Contract
	// State translates a kept contract again, with the facts that are kept with it.
	State func(context.Context, *trial.Contract) (*desired.State, error)
	// Stands says how the node of a state stands now. It does not wait for what is
	// away.
	Stands func(context.Context, *desired.State) trial.Standing
	// Await waits until the node stands as it did before, or ctx ends. What can't be
	// seen, since the API server is away, is a remark and no error.
	Await func(ctx context.Context, st *desired.State, before trial.Standing) (remark string, err error)
	// LastLogLines are the last that a unit logged, for the end of an error message. It bounds
	// itself, and also tells them where ctx has ended.
	LastLogLines func(ctx context.Context, unit string) string
	// Kubelet is the unit that Stands and Await speak of.
	Kubelet string
	// Elsewhere are directories that a unit reads and in which others put files.
	Elsewhere map[string][]string
	// Program is the path of berth, for the units of a trial.
	Program string
	// First are units, besides those of the trial, that wait at boot until it is taken
	// back.
	First []string

	// NoRevert leaves what fails as it is.
	NoRevert bool
	// Within is how long a person has to confirm the change; zero: nobody has to.
	Within time.Duration
	// Yields: a change of this contract that waits for a person's word is left alone.
	Yields bool
	// Later: the caller says with Keep that a change which is no trial is good.
	Later bool
}

// OnTrialError is a change that waits for a person's word: another contract's, or one of
// this contract for a caller that yields.
type OnTrialError struct {
	Note *trial.Note
	// Deadline is the note's.
	Deadline string
}

// Error says whose it is, and how long it may wait.
func (e *OnTrialError) Error() string {
	return fmt.Sprintf("a change of the %s contract waits to be confirmed, %s", e.Note.Owner, e.Deadline)
}

// Hint says how to end it.
func (e *OnTrialError) Hint() string { return "Run berth confirm, or wait until it is taken back." }

// ErrNoWayBack is a change that shall be confirmed where there is no last good
// contract.
var ErrNoWayBack = errors.New("no configuration of this kind is known to be good: there is nothing to go back to")

// try is one run of Apply as a trial, or as what may become one.
type try struct {
	*Trial
	*attempt
	// good is what there is to go back to; nil makes the run no trial.
	good *trial.Contract
	// old is its state, once this run has begun the trial.
	old *desired.State
	// left is the note of an earlier run that was cut off, of this owner.
	left *trial.Note
	// note is this run's; nil as long as it is no trial.
	note *trial.Note
	// touched says that the run has changed something that shows.
	touched bool
	// undone is why something was not done without which the change on trial is decided
	// about: what waits for the API server, or units that are not on trial.
	undone error
	// armed says that this run has begun the trial, at began by the program's own clock,
	// which does not jump.
	armed bool
	began time.Time
	// blame has what is known of the units' inputs, from before the change.
	blame map[string]inputs
}

// newTry looks what there is to go back to. A trial of another owner that was cut
// off is taken back first. It leaves none where there are no trials.
func (a *attempt) newTry(ctx context.Context) error {
	t := &try{Trial: a.e.opt.Trial, attempt: a, blame: map[string]inputs{}}
	if t.Trial == nil || a.e.opt.Offline {
		return nil
	}
	err := trial.Sweep(t.e.opt.Host, t.st.Owner)
	if err != nil {
		return err
	}
	if t.left, err = trial.Load(t.e.opt.Host); isTorn(err) {
		err = t.drop(ctx, err)
	}
	if err != nil {
		return err
	}
	if err := t.others(ctx); err != nil {
		return err
	}
	a.try = t
	return t.wayBack()
}

// others ends the trial of another owner, unless a person may still have a word on it.
func (t *try) others(ctx context.Context) error {
	if t.left == nil || t.left.Owner == t.st.Owner && !t.Yields {
		return nil
	}
	if waits, err := t.waits(ctx); err != nil {
		return err
	} else if waits {
		return &OnTrialError{t.left, t.left.Deadline(t.e.opt.Host)}
	}
	if t.left.Owner == t.st.Owner {
		return nil
	}
	err := t.e.back(ctx, t.left.Owner, t.res)
	if errors.Is(err, ErrNoWayBack) {
		err = t.drop(ctx, fmt.Errorf("the %s contract: %w", t.left.Owner, err))
	}
	if err != nil {
		return fmt.Errorf("take back the change of the %s contract that was cut off: %w", t.left.Owner, err)
	}
	t.left = nil
	return nil
}

// waits says whether a person may still have a word on the change that is on trial.
func (t *try) waits(ctx context.Context) (bool, error) {
	if !t.left.Waiting {
		return false, nil
	}
	if here, err := t.left.IsPresent(ctx, t.e.opt.Host); err != nil || !here {
		return false, err
	}
	return trial.Timed(ctx, t.e.opt.Host)
}

// drop ends a trial of which nothing is known by which anybody could go back.
func (t *try) drop(ctx context.Context, why error) error {
	t.res.Plan.Remarks = append(t.res.Plan.Remarks, "a change that was on trial is not taken back: "+why.Error())
	return trial.Disarm(ctx, t.e.opt.Host, &trial.Note{Owner: t.st.Owner})
}

func isTorn(err error) bool {
	_, ok := errors.AsType[*trial.TornError](err)
	return ok
}

// wayBack finds the last good contract. To ask for it again is no trial: it is the way back from
// one, where there is one, and needs nobody who issues what that has replaced.
func (t *try) wayBack() error {
	good, same, err := t.e.known.Good(t.e.opt.Host, t.st.Owner, &t.Contract)
	if err == nil && same && t.left != nil {
		t.e.way.Kept, err = keptCredentials(t.e.opt.Host, t.st.Owner)
	}
	if err != nil || same {
		return err
	}
	if good == nil && t.Within > 0 {
		return ErrNoWayBack
	}
	if good == nil || t.NoRevert {
		return nil
	}
	t.good, t.note = good, t.left
	return nil
}

// arm makes the run a trial before its first change, if it starts something anew
// that runs well, or if it goes on with one.
func (t *try) arm(ctx context.Context, x *executor) error {
	if t != nil && t.NoRevert && t.left != nil { // what waited is no longer what a word would be on
		left := t.left
		t.left = nil
		return trial.Disarm(ctx, t.e.opt.Host, left)
	}
	if t == nil || t.good == nil {
		return nil
	}
	units, err := t.disrupted(ctx, x)
	if err != nil || len(units) == 0 && !t.armed && t.left == nil && t.Within == 0 {
		return err
	}
	if len(units) == 0 && t.armed {
		return t.keepCredentials(x)
	}
	old, err := t.State(ctx, t.good)
	if err != nil && t.Within == 0 {
		t.good, t.note = nil, nil
		t.res.Plan.Remarks = append(t.res.Plan.Remarks, "the last good configuration can't be translated any more, so there is no way back to it: "+err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("translate the last good configuration: %w", err)
	}
	n, err := trial.Begun(ctx, t.e.opt.Host)
	if err != nil {
		return err
	}
	n.Owner, n.Sum, n.Units = t.st.Owner, t.Contract.Sum(), units
	if t.note != nil {
		n.Units, n.Before = append(n.Units, t.note.Units...), t.note.Before
	} else {
		n.Before = t.Stands(ctx, old)
	}
	t.old = old
	return t.begin(ctx, n, x)
}

// goOn gives a person anew the time to confirm a change that is in place already.
func (t *try) goOn(ctx context.Context, x *executor) error {
	if t == nil || t.left == nil || t.Within == 0 {
		return nil
	}
	return t.arm(ctx, x)
}

// begin writes what the next boot needs.
func (t *try) begin(ctx context.Context, n *trial.Note, x *executor) error {
	before, err := t.before(ctx, n.Units, t.old)
	if err != nil {
		return err
	}
	timed := t.Within > 0 && !t.armed
	switch {
	case timed:
		n.Until, t.began = n.Began.Add(t.Within), time.Now()
		if up, err := host.Uptime(t.e.opt.Host); err == nil {
			n.End = up + t.Within
		}
	case t.armed:
		n.Until, n.End = t.note.Until, t.note.End
	}
	t.note, t.armed = n, true
	if err := trial.Arm(t.e.opt.Host, n, t.Program, before); err != nil {
		return err
	}
	if err := t.keepCredentials(x); err != nil {
		return err
	}
	if !timed {
		return nil
	}
	return trial.ArmTimer(ctx, t.e.opt.Host, t.Program, t.Within)
}

// before are the units that start after the way back at boot: all that either
// contract wants to run, and those that read what changes.
func (t *try) before(ctx context.Context, units []string, old *desired.State) ([]string, error) {
	names := slices.Concat(units, t.First, t.e.unitsOf(old, kind.Runner.Runs), t.e.unitsOf(t.st, kind.Runner.Runs))
	slices.Sort(names)
	var out []string
	for _, name := range slices.Compact(names) {
		st, err := t.e.opt.Host.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		if trial.Orderable(st) {
			out = append(out, name)
		}
	}
	return out, nil
}

// unitsOf are the units of a state that are of a sort.
func (e *Engine) unitsOf(st *desired.State, are func(kind.Runner, desired.Resource) bool) []string {
	var out []string
	for _, r := range st.Resources {
		if k, ok := e.kinds[r.Kind()].(kind.Runner); ok && are(k, r) {
			out = append(out, k.Unit(r.ID()))
		}
	}
	return out
}

// disrupted are the units that run well and are started anew.
func (t *try) disrupted(ctx context.Context, x *executor) ([]string, error) {
	var out []string
	for _, task := range x.v.Tasks() {
		for _, name := range x.startedAnew(task) {
			st, err := t.e.opt.Host.Unit(ctx, name)
			if err != nil {
				return nil, err
			}
			if !t.runsWell(st) {
				continue
			}
			out = append(out, name)
			t.blame[name] = inputsOf(t.e.opt.Host, x, task, st, t.Elsewhere[name])
		}
	}
	return out, nil
}

// runsWell says that a unit is active, and is not one that comes and goes: a
// service that does not say when it is up may be between two ends.
func (t *try) runsWell(st host.UnitStatus) bool {
	silent := slices.Contains([]string{"simple", "exec", "idle"}, st.ServiceType)
	return st.ActiveState == "active" && (!silent || st.NRestarts == 0 || t.e.opt.Host.Now().Sub(beganAt(st)) >= stayUp)
}

// beganAt is when a unit read its files.
func beganAt(st host.UnitStatus) time.Time {
	if st.ExecMainStart.IsZero() {
		return st.ActiveEnter
	}
	return st.ExecMainStart
}

// end decides about the run and keeps its contract, or goes back.
func (t *try) end(ctx context.Context, err error) error {
	switch {
	case t == nil:
		return err
	case err != nil && (t.note == nil || !t.touched):
		return errors.Join(err, t.unchanged(ctx))
	case t.undone != nil && errors.Is(err, t.undone) && ctx.Err() == nil:
		return t.decide(ctx, t.confirm(ctx), t.undone)
	case t.undone != nil && errors.Is(err, t.undone) && errors.Is(ctx.Err(), context.DeadlineExceeded):
		ctx = context.WithoutCancel(ctx) // what is undone took all of the time
		return t.decide(ctx, t.confirm(ctx), t.undone)
	case err == nil && t.note != nil:
		err = t.confirm(ctx)
	}
	return t.decide(ctx, err, nil)
}

// decide keeps a change or goes back; undone is of a part of it that is not done. Then what
// holds stays, for good or until a person has had a word on it, but the contract as a whole is
// not known to be good.
func (t *try) decide(ctx context.Context, err, undone error) error {
	switch {
	case err != nil:
		return t.failed(ctx, errors.Join(err, undone))
	case t.byHand():
		return errors.Join(undone, t.wait(undone == nil))
	case undone != nil:
		return errors.Join(undone, trial.Disarm(context.WithoutCancel(ctx), t.e.opt.Host, t.note))
	}
	return t.keep(ctx)
}

// byHand says that a person has to confirm the change.
func (t *try) byHand() bool { return t.note != nil && !t.note.Until.IsZero() && t.Within > 0 }

// aside does what waits for the API server. Where that fails and nothing has come of
// it, the change of the machine is decided about by itself.
func (t *try) aside(do func() error) error {
	if t == nil {
		return do()
	}
	before := t.touched
	t.touched = false
	err := do()
	if err != nil && !t.touched {
		t.undone = err
	}
	t.touched = t.touched || before
	return err
}

// tries says whether a unit is on trial.
func (t *try) tries(unit string) bool { return t.onTrial() && slices.Contains(t.note.Units, unit) }

// isOf says whether an error is of what is on trial, or of no unit.
func (t *try) isOf(err error) bool {
	return slices.ContainsFunc(leaves(err), func(e error) bool {
		u, ok := errors.AsType[*UnitError](e)
		return !ok || t.tries(u.Unit)
	})
}

// onTrial says whether the run is a trial.
func (t *try) onTrial() bool { return t != nil && t.note != nil }

// touch notes that something changes that shows.
func (t *try) touch(shows bool) {
	if t != nil && shows {
		t.touched = true
	}
}

// unchanged ends a trial that has changed nothing. One that an earlier run left
// goes on.
func (t *try) unchanged(ctx context.Context) error {
	if t.note == nil || t.left != nil {
		return nil
	}
	return trial.Disarm(context.WithoutCancel(ctx), t.e.opt.Host, t.note)
}

// keep makes the contract the last good one, if all of it is in force.
func (t *try) keep(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if t.scope.Decide == nil && (!t.Later || t.note != nil) {
		if err := trial.Keep(t.e.opt.Host, t.st.Owner, &t.Contract); err != nil {
			return err
		}
	}
	if t.note == nil && t.left == nil {
		return nil
	}
	return trial.Disarm(ctx, t.e.opt.Host, &trial.Note{Owner: t.st.Owner})
}

// wait leaves the change to a person, whose word is on the contract if all of it is done.
func (t *try) wait(whole bool) error {
	var err error
	if whole {
		err = trial.KeepTried(t.e.opt.Host, t.st.Owner, &t.Contract)
	} else {
		err = trial.ForgetTried(t.e.opt.Host, t.st.Owner)
	}
	if err != nil {
		return err
	}
	t.note.Waiting, t.res.Until = true, t.note.Until
	if left, ok := t.note.Left(t.e.opt.Host); ok {
		t.res.Left = left.String()
	}
	return t.note.Save(t.e.opt.Host)
}
