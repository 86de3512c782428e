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
	r := p.st.Lookup(t.ID)
	if r == nil {
		return ids
	}
	if f, ok := p.kinds[r.Kind()].(kind.Follower); ok {
		ids = append(ids, f.Follows(r)...)
	}
	return ids
}

// apart does first what needs no API server, then plans anew and does the rest.
// The result's plan is the whole one.
func (e *Engine) apart(ctx context.Context, p *planner, waiting map[desired.ID]bool, res *Result, t *try) error {
	whole := res.Plan
	for _, t := range p.v.Tasks() {
		if waiting[t.ID] {
			t.Withhold(false)
		}
	}
	if err := p.parents(ctx); err != nil { // those that what waits would have made
		return err
	}
	first := *res
	first.Plan = p.public()
	err := (&executor{planner: p, result: &first, try: t}).execute(ctx)
	whole.add(first.Plan)
	if *res = first; err == nil {
		err = t.aside(func() error { return e.rest(ctx, p, res, t) })
		whole.add(res.Plan)
	}
	res.Plan = whole
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

// rest does what a first part left.
func (e *Engine) rest(ctx context.Context, first *planner, res *Result, t *try) error {
	led, err := e.ledger.Load(e.opt.Host)
	if err != nil {
		return err
	}
	p, err := e.plan(ctx, first.st, led, first.scope)
	if err != nil {
		return err
	}
	res.Plan = p.public()
	if err := p.blocked(); err != nil {
		return err
	}
	return (&executor{planner: p, result: res, try: t}).execute(ctx)
}
