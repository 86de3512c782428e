package unit

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// Remove implements kind.Remover: what ran before berth runs, with what it ran
// with then, and what did not stops.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	_, activation, _ := strings.Cut(e.Applied.Value, "/")
	name := strings.TrimPrefix(id, "unit:")
	if v.Offline || unitname.IsTemplate(name) || activation == "" || e.Was == nil {
		return nil
	}
	p := &planner{View: v, sys: systemdOf(v), t: t, name: name, u: &desired.Unit{Name: name, Activation: desired.Started}}
	if err := p.ask(ctx); err != nil {
		return err
	}
	if e.Was.Value == "active" {
		masked, err := p.isToBeMasked()
		if err != nil || masked && running(p.status) && !p.Changes(p.Real(p.status.FragmentPath)) {
			return err
		}
		if masked {
			t.Kept = append(t.Kept, id+" stays stopped: it ran before berth, but was masked already, so that nobody can start it")
			p.fragment = ""
			p.stop("its mask comes back")
			return nil
		}
		made, err := p.generated()
		if err != nil {
			return err
		}
		if p.fragment != "" || made {
			p.triggers, p.reloads = sorted(p.last.Triggers), sorted(p.last.Reloads)
			return p.activation()
		}
		if activation == string(desired.Stopped) && down(p.status) {
			t.Kept = append(t.Kept, id+" is no longer wanted stopped and stays so: it ran before berth, without a definition to start it by")
		}
	}
	p.stop("was not running before berth")
	return nil
}

// Close implements kind.Closer: it sees to units that the state does not name, and
// to what follows for all from what happens to some.
func (Kind) Close(ctx context.Context, v *kind.View) error {
	s := systemdOf(v)
	if v.Offline {
		return nil
	}
	names := slices.DeleteFunc(s.touched(), func(name string) bool { _, ok := partOf(name); return !ok })
	if len(names) > 0 {
		if err := s.list(ctx); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := s.reread(ctx, name); err != nil {
			return err
		}
	}
	if err := s.consequences(ctx); err != nil {
		return err
	}
	s.end(names)
	return nil
}

// reread plans what follows from a change of a definition, a drop-in or a link for
// each unit that systemd has loaded.
func (s *systemd) reread(ctx context.Context, name string) error {
	p, _ := partOf(name)
	concerned, err := s.concerned(ctx, p)
	if err != nil {
		return err
	}
	for _, known := range concerned {
		if p.role == wantedLink && (!running(known) || s.isLate(name)) {
			continue
		}
		if err := s.see(ctx, name, p, known); err != nil {
			return err
		}
	}
	return nil
}

// planned says whether this plan changes a name; else a run before this one did.
func (s *systemd) planned(name string) bool { return s.v.Changes(name) }

// owed says whether a run that was cut off may have changed a name without telling
// systemd, which goes by times and can miss it.
func (s *systemd) owed(name string) bool {
	o := s.v.Owed
	return o != nil && slices.Contains(o.Definitions, name)
}

// isLate says whether a link is made when everything runs.
func (s *systemd) isLate(name string) bool {
	return slices.ContainsFunc(s.v.Tasks(), func(t *kind.Task) bool {
		return slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return q.Path == name && q.Late })
	})
}

// see plans for one unit.
func (s *systemd) see(ctx context.Context, name string, what part, known host.UnitStatus) error {
	t := s.v.Task(desired.UnitID(known.Name))
	p := &planner{View: s.v, sys: s, t: t, name: known.Name, u: &desired.Unit{Name: known.Name, Activation: desired.Started}}
	if t == nil {
		p.t = &kind.Task{ID: desired.UnitID(known.Name), Base: &desired.Base{}}
	}
	if err := p.ask(ctx); err != nil {
		return err
	}
	old := s.planned(name) || what.role == wantedLink || s.owed(name) || p.holdsOld(p.status)
	if old {
		s.outdated()
	}
	if t != nil && (t.Live != nil || t.Before != nil) {
		return nil // what it does is done with what systemd reads then
	}
	if err := p.follow(name, what, old); err != nil {
		return err
	}
	if t == nil && len(p.t.Actions) > 0 {
		s.v.Add(p.t)
	}
	return nil
}

// follow plans for a unit that does nothing else in this run: it stops when its
// definition goes; it restarts where another contract wants it to run and what it
// runs with goes; else systemd reads what it would start it with, where it holds
// something old.
func (p *planner) follow(name string, what part, old bool) error {
	inState := p.State.Lookup(desired.UnitID(p.u.Name)) != nil
	switch {
	case !inState && p.fragment == "" && what.role == definition && p.Deletes(name):
		p.stop("its definition goes")
		return nil
	case !inState && p.wantedByOthers():
		p.triggers = sorted(p.last.Triggers)
		if err := p.activation(); err != nil || p.t.Live != nil {
			return err
		}
	}
	switch {
	case !old:
		return nil
	case !p.sys.planned(name):
		p.t.Act(kind.VerbReload, "systemd holds another definition: "+name+" changed", kind.DisruptNone)
	case p.Deletes(name):
		p.t.Act(kind.VerbReload, name+" goes", kind.DisruptNone)
	default:
		p.t.Act(kind.VerbReload, name+" changes", kind.DisruptNone)
	}
	p.t.Live = p.sys.current
	return nil
}

// wantedByOthers says whether another contract wants the unit to run.
func (p *planner) wantedByOthers() bool {
	e := p.Ledger.Entries[string(desired.UnitID(p.u.Name))]
	return slices.ContainsFunc(e.Others(p.State.Owner), func(o desired.Owner) bool {
		return strings.HasSuffix(e.Owners[o], "/"+string(desired.Started))
	})
}

// consequences finds what stops along with units that stop or restart, and the
// order in which systemd would take them.
func (s *systemd) consequences(ctx context.Context) error {
	acting := map[string]*kind.Task{}
	for _, t := range s.v.Tasks() {
		if name, ok := strings.CutPrefix(string(t.ID), "unit:"); ok && isUnit(name) && (t.Live != nil || t.Before != nil) {
			acting[name] = t
		}
	}
	for _, name := range sorted(acting) {
		st, err := s.unit(ctx, name)
		if err != nil {
			return err
		}
		for _, need := range slices.Concat(st.Needs, st.TriggeredBy, namesakes(name)) {
			if other := acting[need]; other != nil && need != name && !s.comesAfter(other, acting[name]) {
				acting[name].LiveAfter = append(acting[name].LiveAfter, other.ID)
			}
		}
		s.stopsFirst(acting, name, st)
		if t := acting[name]; t.Disrupts() || t.Verb() == kind.VerbStart && strings.HasSuffix(name, ".socket") {
			if err := s.takenAlong(ctx, append(slices.Clone(st.Dependents), socketServices(name, st)...), acting); err != nil {
				return err
			}
		}
	}
	if o := s.v.Owed; o != nil {
		return s.owedRevivals(ctx, o.Revive, acting)
	}
	return nil
}

// stopsFirst orders units as systemd would: what comes after another stops before
// that does. An order that is there already stays: a socket stops before its service,
// so that nobody starts that meanwhile.
func (s *systemd) stopsFirst(acting map[string]*kind.Task, name string, st host.UnitStatus) {
	for _, earlier := range st.After {
		other := acting[earlier]
		if other != nil && earlier != name && other.Disrupts() && acting[name].Verb() == kind.VerbStop && !s.comesAfter(acting[name], other) {
			other.LiveAfter = append(other.LiveAfter, acting[name].ID)
		}
	}
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

// comesAfter says whether one task is ordered after another already.
func (s *systemd) comesAfter(t, other *kind.Task) bool {
	seen := map[desired.ID]bool{}
	var visit func(t *kind.Task) bool
	visit = func(t *kind.Task) bool {
		if t == nil || seen[t.ID] {
			return false
		}
		seen[t.ID] = true
		for _, id := range slices.Concat(t.Base.After, t.LiveAfter) {
			if id == other.ID || visit(s.v.Task(id)) {
				return true
			}
		}
		return false
	}
	return visit(t)
}

// takenAlong notes which units run that may stop, and theirs in turn.
func (s *systemd) takenAlong(ctx context.Context, names []string, acting map[string]*kind.Task) error {
	for _, name := range names {
		if slices.Contains(s.revive, name) || actsOnItself(acting[name]) {
			continue
		}
		st, err := s.unit(ctx, name)
		if err != nil {
			return err
		}
		if !running(st) {
			continue
		}
		s.revive = append(s.revive, name)
		if err := s.takenAlong(ctx, st.Dependents, acting); err != nil {
			return err
		}
	}
	return nil
}

// owedRevivals plans to start what a run that was cut off has left stopped.
func (s *systemd) owedRevivals(ctx context.Context, names []string, acting map[string]*kind.Task) error {
	for _, name := range names {
		if actsOnItself(acting[name]) || slices.Contains(s.revive, name) {
			continue
		}
		st, err := s.unit(ctx, name)
		if err != nil {
			return err
		}
		if !down(st) || st.LoadState != "loaded" {
			continue
		}
		need, err := s.needed(ctx, st.Requires, s.wantedStopped)
		if err != nil {
			return err
		}
		if need != "" {
			s.remark(staysStopped(name, need))
			continue
		}
		s.revive = append(s.revive, name) // as long as it is down the next run owes it, too
		t := acting[name]
		if t == nil {
			t = s.v.Add(&kind.Task{ID: desired.UnitID(name)})
		}
		t.Act(kind.VerbStart, "stopped in a run that was cut off", kind.DisruptNone)
		t.Live = func(ctx context.Context) error {
			if err := s.current(ctx); err != nil {
				return err
			}
			now, err := s.v.Host.Unit(ctx, name)
			if err != nil {
				return err
			}
			return s.startAgain(ctx, now)
		}
	}
	return nil
}

// actsOnItself says whether a task starts, stops or reloads its unit: one that only has systemd
// read its definition does not.
func actsOnItself(t *kind.Task) bool {
	return t != nil && slices.ContainsFunc(t.Actions, func(a kind.Action) bool {
		return a.Verb != kind.VerbReload || a.Disruption != kind.DisruptNone
	})
}

// end enters what comes when all else is done.
func (s *systemd) end(names []string) {
	acts := slices.ContainsFunc(s.v.Tasks(), func(t *kind.Task) bool {
		return strings.HasPrefix(string(t.ID), "unit:") && (t.Live != nil || t.Before != nil)
	})
	if len(names) == 0 && !acts {
		return
	}
	t := s.v.Add(&kind.Task{ID: "systemd", Record: kind.Record{Definitions: names, Revive: s.revive}})
	t.Last = func(ctx context.Context, t *kind.Task) error {
		err := s.last(ctx, names)
		t.Remarks = append(t.Remarks, s.remarks...)
		return err
	}
	t.StayUp = s.confirm
}

// last makes systemd read what it has not read yet, and brings back what stopped as a
// consequence.
func (s *systemd) last(ctx context.Context, names []string) error {
	if err := s.readAll(ctx, names); err != nil {
		return err
	}
	return s.bringBack(ctx)
}
