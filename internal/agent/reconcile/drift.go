package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/agent/status"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// deafFor is how long what can't be watched goes without a look at it.
const deafFor = time.Minute

// listen hears of what happens to what is kept. Where that is not possible now, it
// is tried again when all is looked at, which is soon.
func (r *Reconciler) listen(ctx context.Context) {
	watched, cancel := context.WithCancel(ctx)
	err := r.follow(watched, r.current)
	r.unwatched = err != nil
	if r.unwatched {
		cancel()
		r.o.Log.Warn("drift is seen late", "error", err, "next look in", deafFor.String())
		r.queue.AddAfter(workAll, deafFor)
	}
	r.watch()
	r.watch = cancel
}

// follow hears of whatever changes at the names and units of a target, until ctx
// ends.
func (r *Reconciler) follow(ctx context.Context, t *Target) error {
	names, units := namesOf(t.State)
	own := r.ownNames()
	all := slices.Concat(slices.Collect(maps.Keys(names)), slices.Collect(maps.Keys(own)))
	slices.Sort(all)
	events, err := r.o.Host.Watch(ctx, host.Watched{Names: slices.Compact(all), Units: slices.Sorted(maps.Keys(units))})
	if err != nil {
		return fmt.Errorf("watch what the document asks for: %w", err)
	}
	go func() {
		for e := range events {
			if own[e.Name] {
				r.queue.Add(workOwn)
			}
			r.hear(e, names[e.Name], units[e.Unit])
		}
	}()
	return nil
}

// namesOf are the names and units that show drift. Directories are seen to when all
// is looked at: whatever happens in one would be told as its change. A template is no
// unit: its files are all that there is.
func namesOf(st *desired.State) (names, units map[string][]desired.ID) {
	names, units = map[string][]desired.ID{}, map[string][]desired.ID{}
	for _, res := range st.Resources {
		for _, p := range res.FilePaths() {
			names[p] = append(names[p], res.ID())
		}
		if u, ok := res.(*desired.Unit); ok && !unitname.IsTemplate(u.Name) {
			units[u.Name] = append(units[u.Name], u.ID())
		}
	}
	return names, units
}

func (r *Reconciler) hear(e host.Event, byName, byUnit []desired.ID) {
	if e.Missed {
		r.queue.Add(workAll)
		return
	}
	r.mark(slices.Concat(byName, byUnit))
	r.queue.Add(workDrift)
}

// drift sees to what has changed.
func (r *Reconciler) drift(ctx context.Context) error {
	r.mu.Lock()
	ids := slices.Sorted(maps.Keys(r.dirty))
	clear(r.dirty)
	r.mu.Unlock()
	ids = slices.DeleteFunc(ids, func(id desired.ID) bool { return r.current == nil || r.current.State.Lookup(id) == nil })
	if len(ids) == 0 {
		return nil
	}
	err := r.repair(ctx, converge.Scope{IDs: ids})
	if err != nil {
		r.mark(ids)
	}
	return err
}

// mark notes what has to be looked at.
func (r *Reconciler) mark(ids []desired.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.dirty[id] = true
	}
}

// all looks at everything.
func (r *Reconciler) all(ctx context.Context) error {
	if r.current == nil {
		return nil
	}
	if r.unwatched {
		r.listen(ctx)
	}
	began := r.o.Host.Now()
	err := errors.Join(r.repair(ctx, converge.Scope{}), r.ownDrift(ctx))
	r.o.Log.Debug("looked at everything", "took", r.o.Host.Now().Sub(began).String())
	r.queue.AddAfter(workAll, r.o.SyncPeriod)
	if rest := r.guard.rest(r.o.Host.Now()); rest > 0 {
		r.queue.AddAfter(workAll, rest) // of two times for one item the queue keeps the first
	}
	return err
}

// repair brings back what others changed, as far as that is wanted.
func (r *Reconciler) repair(ctx context.Context, s converge.Scope) error {
	defer r.o.Release(0)
	renewed, err := r.renew(ctx)
	if renewed {
		s.IDs = nil // what was renewed may be of other names
	}
	t := r.current
	rest := r.o.Paused().Sub(r.o.Host.Now())
	if rest > 0 {
		r.queue.AddAfter(workAll, rest)
	}
	if err == nil {
		err = r.undoByHand(ctx, t, rest > 0)
	}
	if err == nil {
		s.Decide, s.Ready = r.decide(t.State, rest > 0), r.stillKept
		var res *converge.Result
		res, err = t.Engine.ApplyScope(ctx, t.State, s)
		if ctx.Err() == nil && !errors.Is(err, errRenewed) {
			r.stopStorms(res.Begun)
			r.report(res.Begun, res.Plan.Reported, s.IDs, r.left)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errRenewed):
		r.queue.Add(workAll)
		return nil
	case r.isOnTrial(err), r.isLocked(err):
		r.queue.AddAfter(workAll, recheck)
		return nil
	case r.isStillWritten(err):
		r.lookSoon(s.IDs)
		return nil
	case err != nil:
		if broken, tried := errors.AsType[*converge.TrialError](err); tried {
			r.wentBack(ctx, broken)
		}
		r.tell(repairing, err)
		return err
	}
	if s.IDs == nil {
		r.allLooked()
	}
	r.settled(repairing)
	return nil
}

// allLooked is after a look at everything. Where that was the last good document, all of it
// is in force again.
func (r *Reconciler) allLooked() {
	r.looked = true
	if r.isLastGood() && r.record.Half {
		r.noteHalf(false)
	}
}

// writes is how often a repair in a row may find that somebody goes on writing: who saves a
// file writes it more than once. writeRest lies between two of those looks.
const (
	writes    = 3
	writeRest = 50 * time.Millisecond
)

// isStillWritten says of the error of a repair that the next look will do. What was taken back
// is told.
func (r *Reconciler) isStillWritten(err error) bool {
	if _, tried := errors.AsType[*converge.TrialError](err); tried || !errors.Is(err, converge.ErrChanged) {
		r.written = 0
		return false
	}
	r.written++
	return r.written <= writes
}

// lookSoon looks again at what was to be repaired; nil is all.
func (r *Reconciler) lookSoon(ids []desired.ID) {
	if ids == nil {
		r.queue.AddAfter(workAll, writeRest)
		return
	}
	r.mark(ids)
	r.queue.AddAfter(workDrift, writeRest)
}

// stopStorms counts what was repaired.
func (r *Reconciler) stopStorms(repaired []converge.Action) {
	counted := map[desired.ID]bool{}
	for _, a := range repaired {
		if counted[a.ID] {
			continue
		}
		counted[a.ID] = true
		if r.guard.note(a.ID, r.o.Host.Now()) {
			r.queue.AddAfter(workAll, r.guard.pause)
			text := fmt.Sprintf("%s was repaired %d times within %s: it is left alone for %s. Find who else writes it.",
				a.ID, r.guard.repairs, r.guard.within, r.guard.pause)
			r.o.Log.Warn(text)
			r.o.Events.Warning("DriftStorm", text)
		}
	}
}

// report tells of drift: of what was repaired, and once of what is left. looked is
// what was looked at; nil is all that left is of.
func (r *Reconciler) report(repaired, reported []converge.Action, looked []desired.ID, left map[desired.ID]string) {
	r.o.Count(status.Repaired, len(repaired))
	if text := actionsText(repaired); text != "" {
		r.o.Log.Info("drift repaired", "actions", text)
		r.o.Events.Normal("DriftRepaired", text)
	}
	was := maps.Clone(left)
	maps.DeleteFunc(left, func(id desired.ID, _ string) bool { return looked == nil || slices.Contains(looked, id) })
	var news []converge.Action
	for _, a := range reported {
		left[a.ID] = a.Reason
		if was[a.ID] != a.Reason {
			news = append(news, a)
		}
	}
	r.o.Count(status.Reported, len(news))
	if text := actionsText(news); text != "" {
		r.o.Log.Warn("drift left alone", "actions", text)
		r.o.Events.Warning("DriftReported", text)
	}
}

// actionsText names actions and their reasons; the first of many.
func actionsText(as []converge.Action) string {
	const most = 5
	var out []string
	for _, a := range as {
		out = append(out, fmt.Sprintf("%s %s (%s)", a.Verb, a.ID, a.Reason))
	}
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(as)-most))
	}
	return strings.Join(out, ", ")
}
