package converge

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// waiting are the tasks that wait for an API server, and those that come after
// them or read what they change, of a machine that joins again and has something else to do. One that joins
// for the first time does all or nothing.
func (p *planner) waiting() map[desired.ID]bool {
	out := map[desired.ID]bool{}
	rejoins := false
	for _, t := range p.v.Tasks() {
		if !t.Waits {
			continue
		}
		out[t.ID] = true
		rejoins = rejoins || t.Rejoins
	}
	if !rejoins {
		return nil
	}
	for grows := true; grows; {
		grows = false
		names := p.namesOf(out)
		for _, t := range p.v.Tasks() {
			if !out[t.ID] && (slices.ContainsFunc(p.follows(t), func(id desired.ID) bool { return out[id] }) || slices.ContainsFunc(t.Inputs, func(at string) bool { return names[at] })) {
				out[t.ID], grows = true, true
			}
		}
	}
	if !slices.ContainsFunc(p.v.Tasks(), func(t *kind.Task) bool { return !out[t.ID] && len(t.Actions) > 0 }) {
		return nil
	}
	return out
}

// namesOf are the names that tasks change.
func (p *planner) namesOf(ids map[desired.ID]bool) map[string]bool {
	out := map[string]bool{}
	for _, t := range p.v.Tasks() {
		if !ids[t.ID] {
			continue
		}
		for _, q := range t.Changes {
			out[q.Path] = true
		}
	}
	return out
}

// follows are the ids that a task comes after.
func (p *planner) follows(t *kind.Task) []desired.ID {
	ids := slices.Concat(t.Base.After, t.StagedAfter, t.LiveAfter)
	r := p.v.State.Lookup(t.ID)
	if r == nil {
		return ids
	}
	if f, ok := p.v.Kinds[r.Kind()].(kind.Follower); ok {
		ids = append(ids, f.Follows(r)...)
	}
	return ids
}

// apart does first what needs no API server, then plans anew and does the rest.
// The result's plan is the whole one.
func (a *attempt) apart(ctx context.Context, p *planner, waiting map[desired.ID]bool) error {
	whole := a.res.Plan
	for _, t := range p.v.Tasks() {
		if waiting[t.ID] {
			t.Withhold(false)
		}
	}
	if err := p.parents(ctx); err != nil { // those that what waits would have made
		return err
	}
	p.scope.Live, a.scope.Live = nil, nil
	a.res.Plan = p.public()
	err := a.execute(ctx, p)
	whole.add(a.res.Plan)
	if err == nil {
		err = a.try.aside(func() error { return a.apply(ctx, true) })
		whole.add(a.res.Plan)
	}
	a.res.Plan = whole
	return err
}

// add takes over what a part of the plan came to besides.
func (p *Plan) add(part *Plan) {
	p.Actions, p.Reported = union(p.Actions, part.Actions), union(p.Reported, part.Reported)
	for all, more := range map[*[]string][]string{&p.Remarks: part.Remarks, &p.Kept: part.Kept} {
		*all = append(*all, more...)
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
}

// union adds the actions that are not there.
func union(all, more []Action) []Action {
	for _, a := range more {
		if !slices.ContainsFunc(all, func(b Action) bool { return a.ID == b.ID && a.Verb == b.Verb }) {
			all = append(all, a)
		}
	}
	return all
}
