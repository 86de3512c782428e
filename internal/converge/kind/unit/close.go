package unit

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Close implements kind.Closer: it sees to units that the state does not name, and
// to what follows for all from what happens to some.
func (Kind) Close(ctx context.Context, v *kind.View) error {
	if v.Offline {
		return nil
	}
	r := runOf(v)
	names := slices.DeleteFunc(r.systemd.touched(), func(name string) bool { _, ok := partOf(name); return !ok })
	for _, name := range names {
		if err := r.reread(ctx, name); err != nil {
			return err
		}
	}
	c := consequences{run: r, acting: map[string]*kind.Task{}}
	if err := c.plan(ctx); err != nil {
		return err
	}
	if len(names)+len(c.acting)+len(r.revive) > 0 {
		r.end(names)
	}
	return nil
}

// reread plans what follows from a change of a definition, a drop-in or a link for
// each unit that systemd has loaded; from a link that is made when everything runs, nothing.
func (r *run) reread(ctx context.Context, name string) error {
	p, _ := partOf(name)
	if p.role == wantedLink && r.isLate(name) {
		return nil
	}
	concerned, err := r.systemd.concerned(ctx, p)
	if err != nil {
		return err
	}
	for _, unit := range concerned {
		if err := r.see(ctx, name, p.role, unit); err != nil {
			return err
		}
	}
	return nil
}

// isLate says whether a link is made when everything runs.
func (r *run) isLate(name string) bool {
	return slices.ContainsFunc(r.v.Tasks(), func(t *kind.Task) bool {
		return slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return q.Path == name && q.Late })
	})
}

// see plans for one unit. A run that was cut off may have changed a name without telling
// systemd, which goes by times and can miss it.
func (r *run) see(ctx context.Context, name string, role role, unit string) error {
	known := r.v.Task(desired.UnitID(unit))
	t := known
	if t == nil {
		t = &kind.Task{ID: desired.UnitID(unit), Base: &desired.Base{}}
	}
	p, err := newPlanner(ctx, r.v, t, &desired.Unit{Name: unit, Activation: desired.Started})
	if err != nil || role == wantedLink && !running(p.unit.status) {
		return err
	}
	owed := r.v.Owed != nil && slices.Contains(r.v.Owed.Definitions, name)
	old := r.v.Changes(name) || role == wantedLink || owed || p.unit.holdsOld()
	if old {
		r.systemd.outdated()
	}
	if acts(t) {
		return nil // what it does is done with what systemd reads then
	}
	if err := p.follow(name, role, old); err != nil {
		return err
	}
	if known == nil && len(t.Actions) > 0 {
		r.v.Add(t)
	}
	return nil
}

// acts says whether a task does anything to its unit, if only systemd reads it again.
func acts(t *kind.Task) bool { return t.Live != nil || t.Before != nil }

// follow plans for a unit that does nothing else in this run: it stops when its
// definition goes; it restarts where another contract wants it to run and what it
// runs with goes; else systemd reads what it would start it with, where it holds
// something old.
func (p *planner) follow(name string, role role, old bool) error {
	inState := p.v.State.Lookup(p.u.ID()) != nil
	switch {
	case !inState && p.unit.in.definition.fragment == "" && role == unitFile && p.v.Deletes(name):
		p.stop("its definition goes")
		return nil
	case !inState && p.wantedByOthers():
		p.unit.in.triggers = sorted(p.unit.in.last.Triggers)
		if err := p.activation(); err != nil || p.t.Live != nil {
			return err
		}
	}
	switch {
	case !old:
	case !p.v.Changes(name):
		p.readAgain("systemd holds another definition: " + name + " changed")
	case p.v.Deletes(name):
		p.readAgain(name + " goes")
	default:
		p.readAgain(name + " changes")
	}
	return nil
}

// wantedByOthers says whether another contract wants the unit to run.
func (p *planner) wantedByOthers() bool {
	e := p.v.Ledger.Entries[string(p.u.ID())]
	return slices.ContainsFunc(e.Others(p.v.State.Owner), func(o desired.Owner) bool {
		return strings.HasSuffix(e.Owners[o], "/"+string(desired.Started))
	})
}

// end enters what comes when all else is done: systemd reads what it has not read yet, and what
// stopped as a consequence comes back.
func (r *run) end(names []string) {
	t := r.v.Add(&kind.Task{ID: "systemd", Record: kind.Record{Definitions: names, Revive: r.revive}, Work: kind.Work{StayUp: r.stayUp}})
	t.Last = func(ctx context.Context, t *kind.Task) error {
		err := r.systemd.readAll(ctx, names)
		if err == nil {
			err = r.bringBack(ctx)
		}
		t.Remarks = append(t.Remarks, r.remarks...)
		return err
	}
}

// consequences are what stops along with units that stop or restart, and the order in which
// systemd would take them.
type consequences struct {
	run *run
	// acting are the tasks of units to which something is done.
	acting map[string]*kind.Task
}

func (c *consequences) plan(ctx context.Context) error {
	for _, t := range c.run.v.Tasks() {
		if name, ok := strings.CutPrefix(string(t.ID), "unit:"); ok && isUnit(name) && acts(t) {
			c.acting[name] = t
		}
	}
	for _, name := range sorted(c.acting) {
		st, err := c.run.systemd.unit(ctx, name)
		if err != nil {
			return err
		}
		c.order(name, st)
		if t := c.acting[name]; t.Disrupts() || t.Verb() == kind.VerbStart && strings.HasSuffix(name, ".socket") {
			if err := c.takenAlong(ctx, slices.Concat(st.Dependents, socketServices(name, st))); err != nil {
				return err
			}
		}
	}
	if o := c.run.v.Owed; o != nil && !c.run.v.Booting {
		return c.owedRevivals(ctx, o.Revive)
	}
	return nil
}

// order takes units as systemd would: one comes after what it needs, and what comes after another
// stops before that does. An order that is there already stays: a socket stops before its service,
// so that nobody starts that meanwhile.
func (c *consequences) order(name string, st host.UnitStatus) {
	t := c.acting[name]
	for _, need := range slices.Concat(st.Needs, st.TriggeredBy, namesakes(name)) {
		if other := c.acting[need]; other != nil {
			c.follows(t, other)
		}
	}
	for _, earlier := range st.After {
		if other := c.acting[earlier]; other != nil && other.Disrupts() && t.Verb() == kind.VerbStop {
			c.follows(other, t)
		}
	}
}

// follows orders one task after another, unless that comes after it already.
func (c *consequences) follows(t, other *kind.Task) {
	if t != other && !c.comesAfter(other, t) {
		t.LiveAfter = append(t.LiveAfter, other.ID)
	}
}

// comesAfter says whether one task is ordered after another already.
func (c *consequences) comesAfter(t, other *kind.Task) bool {
	seen := map[desired.ID]bool{}
	var visit func(t *kind.Task) bool
	visit = func(t *kind.Task) bool {
		if t == nil || seen[t.ID] {
			return false
		}
		seen[t.ID] = true
		for _, id := range slices.Concat(t.Base.After, t.LiveAfter) {
			if id == other.ID || visit(c.run.v.Task(id)) {
				return true
			}
		}
		return false
	}
	return visit(t)
}

// namesakes are the sockets that a service belongs to where they say nothing else:
// once it runs, systemd refuses to start them. Of a new one systemd can't tell.
func namesakes(name string) []string {
	if stem, ok := strings.CutSuffix(name, ".service"); ok {
		return []string{stem + ".socket"}
	}
	return nil
}

// socketServices are the services that have to stop for a socket to start: of a socket that
// is new to systemd the one of its name.
func socketServices(name string, st host.UnitStatus) []string {
	stem, ok := strings.CutSuffix(name, ".socket")
	switch {
	case !ok:
		return nil
	case st.LoadState == "not-found":
		return []string{stem + ".service"}
	}
	return st.Triggers
}

// takenAlong notes which units run that may stop, and theirs in turn.
func (c *consequences) takenAlong(ctx context.Context, names []string) error {
	for _, name := range names {
		if !c.stops(name) {
			continue
		}
		st, err := c.run.systemd.unit(ctx, name)
		if err != nil {
			return err
		}
		if !running(st) {
			continue
		}
		c.run.comesBack(name)
		if err := c.takenAlong(ctx, st.Dependents); err != nil {
			return err
		}
	}
	return nil
}

// owedRevivals plans to start what a run that was cut off has left stopped.
func (c *consequences) owedRevivals(ctx context.Context, names []string) error {
	for _, name := range names {
		if !c.stops(name) {
			continue
		}
		st, err := c.run.systemd.unit(ctx, name)
		if err != nil {
			return err
		}
		if !down(st) || !loaded(st) {
			continue
		}
		c.run.comesBack(name) // as long as it is down the next run owes it, too
		need, err := c.run.needed(ctx, st.Requires)
		if err != nil {
			return err
		}
		if need != "" {
			continue
		}
		t := c.acting[name]
		if t == nil {
			t = c.run.v.Add(&kind.Task{ID: desired.UnitID(name)})
		}
		t.Act(kind.VerbStart, "stopped in a run that was cut off", kind.DisruptNone) // in the end
	}
	return nil
}

// stops says that a unit may stop only as a consequence, and that it is not noted yet: a task
// that starts, stops or reloads it sees to it, one that only has systemd read its definition
// does not.
func (c *consequences) stops(name string) bool {
	t := c.acting[name]
	return !slices.Contains(c.run.revive, name) && (t == nil || !slices.ContainsFunc(t.Actions, func(a kind.Action) bool {
		return a.Verb != kind.VerbReload || a.Disruption != kind.DisruptNone
	}))
}
