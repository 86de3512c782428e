package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// reverting bounds the way back of a run that was told to stop, too.
const reverting = 2 * time.Minute

// TrialError is a change that did not hold.
type TrialError struct {
	Owner desired.Owner
	// Err is what broke; Words are what the unit said, "" where Err tells it.
	Err   error
	Words string
	// Foreign are files of others that broke it: to go back would not help.
	Foreign []string
	// Revert is why the way back failed; nil where the last good contract is in force
	// again, or Foreign is set.
	Revert error
}

// Error says what broke, and what is in force now.
func (e *TrialError) Error() string {
	lines := []string{e.Err.Error() + e.Words}
	switch {
	case e.Revert != nil:
		lines = append(lines, "the way back to the last good configuration failed, too: "+e.Revert.Error())
	case len(e.Foreign) > 0:
		lines = append(lines, "the change stays in force, since to go back would not help")
	default:
		lines = append(lines, "the last good configuration is in force again")
	}
	if len(e.Foreign) > 0 {
		lines = append(lines, "not berth's, and changed since the unit was last started: "+strings.Join(e.Foreign, ", "))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns what broke, and why the way back failed.
func (e *TrialError) Unwrap() []error {
	if e.Revert == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Revert}
}

// failed goes back to the last good contract, unless that can't help.
func (t *try) failed(ctx context.Context, cause error) error {
	cause = t.first(cause)
	f := &TrialError{Owner: t.st.Owner, Err: cause}
	unit, broke := "", leaves(cause)[0]
	if u, ok := errors.AsType[*UnitError](broke); ok {
		unit = u.Unit
		f.Words = t.LastLogLines(ctx, unit)
	} else if _, ok := errors.AsType[*nodeError](broke); ok {
		unit = t.Kubelet
	}
	foreign, only := t.blame[unit].ofOthers(t.e.opt.Host, cause.Error()+f.Words)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reverting)
	defer cancel()
	if only {
		f.Foreign = foreign
		return errors.Join(f, trial.Disarm(ctx, t.e.opt.Host, t.note))
	}
	if f.Revert = t.e.back(ctx, t.st.Owner, t.res); f.Revert != nil {
		f.Foreign = foreign
	}
	return f
}

// first has what broke of what is on trial come before what failed beside it.
func (t *try) first(cause error) error {
	var tried, beside []error
	for _, err := range leaves(cause) {
		if t.isOf(err) {
			tried = append(tried, err)
		} else {
			beside = append(beside, err)
		}
	}
	all := append(tried, beside...)
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// back applies an owner's last good contract and ends the trial.
func (e *Engine) back(ctx context.Context, owner desired.Owner, res *Result) error {
	good, err := trial.Good(e.opt.Host, owner)
	if err != nil {
		return err
	}
	if good == nil {
		return ErrNoWayBack
	}
	st, err := e.opt.Trial.State(ctx, good)
	if err != nil {
		return fmt.Errorf("translate the last good configuration: %w", err)
	}
	own := &Result{Plan: &Plan{Owner: owner}}
	way, err := e.wayBack(owner)
	if err != nil {
		return err
	}
	err = (&attempt{e: way, st: st, res: own}).apply(ctx, false)
	res.Timeline = append(res.Timeline, own.Timeline...)
	if e.way.Booting { // nobody else has a plan to tell of
		res.Plan.Remarks = append(res.Plan.Remarks, own.Plan.Remarks...)
	}
	if err != nil {
		return err
	}
	return errors.Join(trial.Sweep(e.opt.Host, owner), trial.Disarm(ctx, e.opt.Host, &trial.Note{Owner: owner}))
}

// wayBack is the engine for the last good contract, which takes nothing from others.
func (e *Engine) wayBack(owner desired.Owner) (*Engine, error) {
	o := e.opt
	o.TakeOver, o.Drainer, o.UnitTimeout = false, nil, 0 // whoever began the change ends its drain
	back := New(o)
	kept, err := keptCredentials(o.Host, owner)
	back.way = kind.Return{Booting: e.way.Booting, Returning: true, Kept: kept}
	return back, err
}

// Restore is the way back at boot, before what was on trial starts: it makes the
// files those of the last good contract and leaves it to systemd to start units: those that
// the boot would not start it is asked for, and what the boot was to start and that contract
// wants stopped is taken out.
// done is what has come of it, "" where there was nothing to do.
func (e *Engine) Restore(ctx context.Context) (done string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reverting)
	defer cancel()
	b := New(e.opt)
	b.way.Booting = true
	err = b.exclusively(ctx, func() error {
		n, why, err := e.onTrial(ctx)
		if err != nil || n == nil {
			done = why
			return err
		}
		if here, err := n.IsPresent(ctx, e.opt.Host); err != nil || here {
			return err
		}
		done = fmt.Sprintf("a change of the %s contract was on trial when the machine stopped", n.Owner) + again
		res := &Result{Plan: &Plan{}}
		if err := b.back(ctx, n.Owner, res); err != nil {
			return err
		}
		for _, r := range res.Plan.Remarks {
			done += "\n" + r
		}
		return e.endDrain(ctx, Returned)
	})
	return done, err
}

// Revert is the way back when a person's time is over, or was cut off.
func (e *Engine) Revert(ctx context.Context) (done string, err error) {
	err = e.exclusively(ctx, func() error {
		n, why, err := e.onTrial(ctx)
		if err != nil || n == nil {
			done = why
			return err
		}
		done = fmt.Sprintf("nobody has confirmed the change of the %s contract", n.Owner) + again
		err = e.back(ctx, n.Owner, &Result{})
		return errors.Join(err, e.endDrain(ctx, e.outcome(n.Owner, Scope{}, err)))
	})
	return done, err
}

// again says what has come of it.
const again = ": the last good configuration is in force again"

// onTrial is what may be taken back. Of a note that is damaged nobody can say that: it
// goes, and why says so, once.
func (e *Engine) onTrial(ctx context.Context) (n *trial.Note, why string, err error) {
	n, err = trial.Load(e.opt.Host)
	if !isTorn(err) {
		return n, "", err
	}
	why = "a change was on trial, and nothing is taken back: " + err.Error()
	return nil, why, trial.Drop(ctx, e.opt.Host)
}

// inputs are what a unit reads, as it was before the change.
type inputs struct {
	// began is when it read them last.
	began time.Time
	// own are those that this run changes, others those that are not berth's.
	own, others []string
}

func inputsOf(h host.Host, x *executor, t *kind.Task, st host.UnitStatus, elsewhere []string) inputs {
	in := inputs{began: beganAt(st)}
	for _, p := range t.Inputs {
		if x.v.Changes(p) {
			in.own = append(in.own, p)
		}
	}
	all := slices.Concat(t.Inputs, st.DropInPaths, []string{st.FragmentPath})
	for _, dir := range elsewhere {
		names, err := h.ReadDir(dir)
		if err != nil {
			continue // there is none
		}
		for _, name := range names {
			all = append(all, dir+"/"+name)
		}
	}
	slices.Sort(all)
	for _, p := range slices.Compact(all) {
		if real := x.v.Real(p); p != "" && !x.v.Changes(real) && !x.v.Ledger.Made(real) {
			in.others = append(in.others, p)
		}
	}
	return in
}

// ofOthers names the files of others that changed since the unit was last started.
// They alone are to blame where this run changed nothing that the unit reads, or
// where what is said names them and nothing of this run's.
func (in inputs) ofOthers(h host.FS, said string) (foreign []string, only bool) {
	for _, p := range in.others {
		if info, err := ledger.Lstat(h, p); err == nil && info != nil && info.ChangeTime.After(in.began) {
			foreign = append(foreign, p)
		}
	}
	named := func(p string) bool { return namesPath(said, p) }
	if len(foreign) == 0 {
		return nil, false
	}
	return foreign, len(in.own) == 0 || slices.ContainsFunc(foreign, named) && !slices.ContainsFunc(in.own, named)
}

// namesPath says whether a text names a path, and not only one that begins with it.
func namesPath(text, p string) bool {
	for {
		_, rest, found := strings.Cut(text, p)
		if !found {
			return false
		}
		if next := strings.TrimLeft(rest, "."); next == "" || !strings.ContainsAny(next[:1], inNames) {
			return true
		}
		text = rest
	}
}

// inNames are characters with which a name goes on; a dot ends a sentence, too.
const inNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/@~"

// forget ends what is kept of an owner that asks for nothing any more.
func (e *Engine) forget(ctx context.Context, owner desired.Owner) error {
	n, err := trial.Load(e.opt.Host)
	if isTorn(err) {
		n, err = &trial.Note{Owner: owner}, nil
	}
	if err != nil {
		return err
	}
	if n != nil && n.Owner == owner {
		if err := trial.Disarm(ctx, e.opt.Host, n); err != nil {
			return err
		}
	}
	return trial.Forget(e.opt.Host, owner)
}
