package converge

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// commit makes the staged state visible: the names, then what runs.
func (x *executor) commit(ctx context.Context) error {
	if err := x.unchanged(); err != nil {
		return errors.Join(err, x.abort())
	}
	if err := x.before(ctx); err != nil {
		return errors.Join(err, x.abort())
	}
	if err := x.unchanged(); err != nil { // a unit may take its time to stop
		return errors.Join(err, x.abort())
	}
	x.try.touch(true)
	g := x.newGraph("commit")
	g.nodes = []*node{{id: namesID, verb: VerbUpdate, do: x.nameAll}}
	if err := g.run(ctx); err != nil {
		return err
	}
	x.named = true
	missed, err := x.goLive(ctx)
	if err != nil {
		return errors.Join(missed, err)
	}
	remote := x.remoteGraph()
	if x.scope.Live != nil && missed == nil && len(remote.nodes) == 0 && !x.try.onTrial() {
		x.scope.Live()
	}
	if err := x.stayUp(ctx); err != nil || missed != nil {
		return x.beside(ctx, missed, err)
	}
	return remote.run(ctx)
}

// nameAll gives all their names, but for what makes units start at boot. Where that fails
// and leaves nothing, it is as if it had failed in stage.
func (x *executor) nameAll(context.Context) error {
	undone, err := x.tree.commit(false)
	if undone {
		return errors.Join(err, x.abort())
	}
	return err
}

func (x *executor) nameLate(context.Context) error {
	_, err := x.tree.commit(true)
	return err
}

// BesideError is of units that failed beside all else that a run was to do, which it did.
type BesideError struct{ Err error }

// Error implements error.
func (e *BesideError) Error() string { return e.Err.Error() }

// Unwrap returns what the units failed with.
func (e *BesideError) Unwrap() []error { return []error{e.Err} }

// goLive changes the running machine, and does what comes when all is live. missed is of what
// failed and the run goes on beside.
func (x *executor) goLive(ctx context.Context) (missed, err error) {
	live := x.liveGraph()
	err = live.run(ctx)
	if err == nil {
		return nil, x.last(ctx)
	}
	if !x.opt.GoOn || !live.isWell() || ctx.Err() != nil {
		return nil, err
	}
	return err, x.last(ctx)
}

// beside is the error of what failed, and of units that did not stay up. Where the run goes on
// beside units that fail, those that are not on trial take nothing back.
func (x *executor) beside(ctx context.Context, start, stay error) error {
	err := errors.Join(start, stay)
	if !x.opt.GoOn || ctx.Err() != nil {
		return err
	}
	if unsaved := x.haveRead(); unsaved != nil {
		return errors.Join(err, unsaved)
	}
	others := slices.ContainsFunc(leaves(err), func(e error) bool { _, ok := errors.AsType[*UnitError](e); return !ok })
	if others {
		return err
	}
	err = &BesideError{err}
	if x.try.onTrial() && !x.try.isOf(stay) {
		x.try.undone = err
	}
	return err
}

// stayUp waits until what was started has stayed up.
func (x *executor) stayUp(ctx context.Context) error {
	for _, t := range x.v.Tasks() {
		if t.StayUp == nil {
			continue
		}
		if err := Safely(func() error { return t.StayUp(ctx) }); err != nil {
			return x.stayErrors(t, err)
		}
	}
	return nil
}

// stayErrors are the errors of units that did not stay up, each of its unit.
func (x *executor) stayErrors(t *kind.Task, err error) error {
	var all []error
	for _, e := range leaves(err) {
		id, field := t.ID, t.Base.Field
		if u, ok := errors.AsType[*UnitError](e); ok {
			id = desired.UnitID(u.Unit)
			if r := x.v.State.Lookup(id); r != nil {
				field = r.Order().Field
			}
		}
		all = append(all, &ActionError{ID: id, Verb: VerbStart, Field: field, Err: e})
	}
	return errors.Join(all...)
}

// before runs what must happen while the old definitions still stand.
func (x *executor) before(ctx context.Context) error {
	for _, t := range x.sorted() {
		if t.Before == nil {
			continue
		}
		x.stopped = x.stopped || t.Disrupts()
		x.came[t.ID] = t.Disrupts()
		x.try.touch(x.stopped)
		if err := t.Before(ctx); err != nil {
			return t.Failed(err)
		}
	}
	return nil
}

// last runs what comes when everything is live.
func (x *executor) last(ctx context.Context) error {
	for _, t := range x.v.Tasks() {
		if t.Last == nil {
			continue
		}
		known := *t
		err := Safely(func() error {
			ctx, cancel := ctx, context.CancelFunc(func() {})
			if !x.try.onTrial() {
				ctx, cancel = x.unitTime(ctx)
			}
			defer cancel()
			return t.Last(ctx, t)
		})
		if err = errors.Join(err, x.absorb(t, known)); err != nil {
			return &ActionError{ID: t.ID, Verb: VerbStart, Field: t.Base.Field, Err: err}
		}
	}
	return nil
}

// absorb takes over what a task has come to besides what was known of it: into the plan,
// and into the ledger what it no longer lets go, and what was there before.
func (x *executor) absorb(t *kind.Task, known kind.Task) error {
	p := x.res.Plan
	p.Remarks, p.Kept = append(p.Remarks, t.Remarks[len(known.Remarks):]...), append(p.Kept, t.Kept[len(known.Kept):]...)
	x.decide()
	if !t.Withheld {
		p.Actions = append(p.Actions, t.Actions[len(known.Actions):]...)
	}
	p.Reported = append(p.Reported, t.Reported[len(known.Reported):]...)
	keeps := len(t.Forget) != len(known.Forget)
	if learnt := x.learn(t); !learnt && !keeps {
		return nil
	}
	if keeps {
		x.run.Drops = slices.DeleteFunc(x.run.Drops, func(id string) bool { return slices.Contains(known.Forget, id) })
	}
	return x.v.Ledger.Begin(x.v.Host, x.run)
}

// remoteGraph holds what changes objects of the cluster.
func (x *executor) remoteGraph() *graph {
	g := x.newGraph("commit")
	for _, t := range x.sorted() {
		if t.Remote != nil {
			g.nodes = append(g.nodes, &node{id: t.ID, verb: t.Verb(), field: t.Base.Field, do: t.Remote})
		}
	}
	return g
}

// The nodes of the timeline that stand for many names at once.
const (
	// namesID is the moment at which the new state becomes visible.
	namesID desired.ID = "names"
	// lateID is what makes units start at boot.
	lateID desired.ID = "enablement"
)

// bestEffort does what may fail without harm, and says so if it does.
func (x *executor) bestEffort(ctx context.Context, b *kind.BestEffort) error {
	if err := b.Do(ctx); err != nil && ctx.Err() == nil {
		x.told.Lock()
		defer x.told.Unlock()
		x.res.Plan.Remarks = append(x.res.Plan.Remarks, b.Missed+": "+err.Error())
	}
	return ctx.Err()
}

// liveGraph holds what changes the running machine. Order passes through tasks
// that have nothing to do themselves.
func (x *executor) liveGraph() *graph {
	g := x.newGraph("commit")
	ahead := x.aheadOfTrial()
	for _, t := range x.sorted() {
		if t.Live != nil {
			g.nodes = append(g.nodes, &node{id: t.ID, verb: t.Verb(), field: t.Base.Field, after: x.liveBefore(t), optional: x.isOptional(t), do: x.inTime(t, ahead[t.ID])})
		}
	}
	for _, t := range x.v.Tasks() {
		if b := t.BestEffort; b != nil {
			g.nodes = append(g.nodes, &node{id: b.ID, verb: b.Verb, after: b.After, behind: x.firstUnitsAfter(t.ID), optional: x.opt.GoOn, do: func(ctx context.Context) error { return x.bestEffort(ctx, b) }})
		}
	}
	if x.hasLate() {
		g.nodes = append(g.nodes, &node{id: lateID, verb: VerbEnable, optional: x.opt.GoOn && !x.try.onTrial(),
			do: x.nameLate})
	}
	return g
}

// firstUnitsAfter are the units that come after a task, directly or through others, and whose
// start waits for no other unit's.
func (x *executor) firstUnitsAfter(id desired.ID) []desired.ID {
	isUnit := func(id desired.ID) bool { _, ok := x.unitOf(id); return ok }
	var out []desired.ID
	for _, t := range x.v.Tasks() {
		if isUnit(t.ID) && t.Live != nil && slices.Contains(x.allBefore(t), id) && !slices.ContainsFunc(x.liveBefore(t), isUnit) {
			out = append(out, t.ID)
		}
	}
	return out
}

// isOptional says whether a run goes on where a task fails. On trial it does so beside units
// that are not on trial; where a unit of others is, which stops along with one of these, beside
// none.
func (x *executor) isOptional(t *kind.Task) bool {
	if !x.opt.GoOn || !x.try.onTrial() {
		return x.opt.GoOn
	}
	unit, isUnit := x.unitOf(t.ID)
	takesAlong := slices.ContainsFunc(x.v.Tasks(), func(t *kind.Task) bool { return slices.ContainsFunc(t.Revive, x.try.tries) })
	return isUnit && !takesAlong && !x.try.tries(unit)
}

// aheadOfTrial are the tasks that something on trial comes after, and what is on trial.
func (x *executor) aheadOfTrial() map[desired.ID]bool {
	ahead := map[desired.ID]bool{}
	var mark func(t *kind.Task)
	mark = func(t *kind.Task) {
		if ahead[t.ID] {
			return
		}
		ahead[t.ID] = true
		for _, id := range x.liveBefore(t) {
			mark(x.v.Task(id))
		}
	}
	for _, t := range x.v.Tasks() {
		if unit, isUnit := x.unitOf(t.ID); isUnit && x.try.tries(unit) {
			mark(t)
		}
	}
	return ahead
}

// inTime bounds the job of a unit, but of one that a trial waits for.
func (x *executor) inTime(t *kind.Task, ahead bool) func(context.Context) error {
	if _, isUnit := x.unitOf(t.ID); !isUnit || ahead {
		return t.Live
	}
	return func(ctx context.Context) error {
		ctx, cancel := x.unitTime(ctx)
		defer cancel()
		return t.Live(ctx)
	}
}

// unitTime bounds what waits for units. What is on trial has no such bound: it would be taken
// back for good.
func (x *executor) unitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	most := x.opt.UnitTimeout
	if most == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, most, &host.BoundError{After: most})
}

// liveBefore finds the live tasks that a task comes after, directly or through
// others.
func (x *executor) liveBefore(t *kind.Task) []desired.ID {
	return slices.DeleteFunc(x.allBefore(t), func(id desired.ID) bool { return x.v.Task(id).Live == nil })
}

// allBefore finds the tasks that a task comes after, directly or through others.
func (x *executor) allBefore(t *kind.Task) []desired.ID {
	var out []desired.ID
	seen := map[desired.ID]bool{t.ID: true}
	var visit func(ids []desired.ID)
	visit = func(ids []desired.ID) {
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			dep := x.v.Task(id)
			if dep == nil {
				continue
			}
			out = append(out, id)
			visit(slices.Concat(dep.Base.After, dep.LiveAfter))
		}
	}
	visit(slices.Concat(t.Base.After, t.LiveAfter))
	return out
}
