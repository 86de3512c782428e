package converge

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// planner compares a state with a machine.
type planner struct {
	opt   Options
	v     *kind.View
	scope Scope
	// decided are tasks of which somebody has decided, with the number of their actions
	// then.
	decided map[*kind.Task]int
}

// plan observes everything in parallel: first credentials, then what stands in the
// tree and what goes from it, then the units, whose state depends on what happens
// to their files.
func (e *Engine) plan(ctx context.Context, st *desired.State, led *ledger.Ledger, s Scope) (*planner, error) {
	o := kind.Options{Providers: e.opt.Providers, Return: e.way,
		Offline: e.opt.Offline, NoFetch: e.opt.NoFetch, TakeOver: e.opt.TakeOver, Contents: &e.contents,
		Mounts: sync.OnceValues(func() ([]host.Mount, error) { return e.opt.Host.Mounts(ctx) })}
	p := &planner{opt: e.opt, v: kind.NewView(o, e.kinds, e.opt.Host, st, led), scope: s, decided: map[*kind.Task]int{}}
	if s.IDs != nil {
		p.v.Narrow(s.IDs)
	}
	for _, step := range []func(context.Context) error{
		p.owed, p.oneEach, p.observer(kind.Credentials), p.observer(kind.Tree), p.removals, p.observer(kind.Units), p.closing,
		p.parents, p.obstacles,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
		p.decide()
		p.v.NoteChanges()
	}
	return p, nil
}

// owed finds what this boot owes.
func (p *planner) owed(ctx context.Context) error {
	if p.v.Ledger.Owed == nil {
		return nil
	}
	here, err := p.v.Ledger.Owed.IsPresent(ctx, p.v.Host)
	if here {
		p.v.Owed = p.v.Ledger.Owed
	}
	return err
}

// oneEach refuses two resources at one path that is spelled in two ways, through a
// link among its parents.
func (p *planner) oneEach(context.Context) error {
	for _, err := range desired.Clashes(p.v.Covered(), p.v.Real) {
		at, _ := errors.AsType[*desired.ResourceError](err)
		return &ActionError{ID: at.ID, Verb: VerbCheck, Field: at.Field, Err: at.Err}
	}
	return nil
}

func (p *planner) observer(pass kind.Pass) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := p.observe(ctx, pass); err != nil {
			return err
		}
		p.decide()
		p.v.NoteChanges()
		return p.removeLive(ctx, pass)
	}
}

func (p *planner) observe(ctx context.Context, pass kind.Pass) error {
	of, err := p.passing(pass)
	if err != nil {
		return err
	}
	if pass == kind.Tree {
		p.describe(of)
	}
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(p.opt.Workers, len(of)) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < len(of); i = int(next.Add(1)) - 1 {
				if err := p.observeOne(ctx, p.v.Kinds[of[i].Kind()], of[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// describe looks at all files of the state at once.
func (p *planner) describe(of []desired.Resource) {
	var files []string
	for _, r := range of {
		if k, ok := p.v.Kinds[r.Kind()].(kind.Describer); ok {
			files = append(files, k.Describes(p.v, r)...)
		}
	}
	var g errgroup.Group
	g.SetLimit(p.opt.Workers)
	p.v.Describe(func(f func()) { g.Go(func() error { return Safely(func() error { f(); return nil }) }) }, files)
	_ = g.Wait() // who looks at a file that was not described does it himself
}

// passing are the resources that a pass looks at.
func (p *planner) passing(pass kind.Pass) ([]desired.Resource, error) {
	var out []desired.Resource
	for _, r := range p.v.Covered() {
		k := p.v.Kinds[r.Kind()]
		if k == nil {
			return nil, &ActionError{ID: r.ID(), Verb: VerbCheck, Field: r.Order().Field, Err: fmt.Errorf("no kind %q", r.Kind())}
		}
		if k.Pass() == pass {
			out = append(out, r)
		}
	}
	return out, nil
}

func (p *planner) observeOne(ctx context.Context, k kind.Kind, r desired.Resource) error {
	t := p.v.Task(r.ID())
	err := Safely(func() error { return k.Observe(ctx, p.v, t, r) })
	if e, ok := errors.AsType[*OwnedElsewhereError](err); ok {
		t.Refuse(e)
		return nil
	}
	if err != nil {
		return &ActionError{ID: r.ID(), Verb: VerbCheck, Field: r.Order().Field, Err: err}
	}
	t.TellClaims()
	return nil
}

// closing lets kinds look at the plan as a whole.
func (p *planner) closing(ctx context.Context) error {
	for _, k := range having[kind.Closer](p.v.Kinds) {
		if err := k.Close(ctx, p.v); err != nil {
			return err
		}
	}
	return nil
}

// public is the plan as data, in an order in which it could be done.
func (p *planner) public() *Plan {
	plan := &Plan{Owner: p.v.State.Owner, Actions: []Action{}}
	for _, t := range p.sorted() {
		plan.Actions = append(plan.Actions, t.Actions...)
		plan.Deferred = append(plan.Deferred, t.Deferred...)
		plan.Reported = append(plan.Reported, t.Reported...)
		plan.Remarks = append(plan.Remarks, t.Remarks...)
		plan.Kept = append(plan.Kept, t.Kept...)
	}
	slices.Sort(plan.Remarks)
	slices.Sort(plan.Kept)
	return plan
}

// blocked is why the plan can't be carried out.
func (p *planner) blocked() error {
	var errs []error
	for _, t := range p.v.Tasks() {
		errs = append(errs, t.Refused)
	}
	return errors.Join(errs...)
}

// sorted orders tasks so that each follows what it comes after, units and then the
// cluster's objects last, ties by the state's order, then removals.
func (p *planner) sorted() []*kind.Task {
	all := p.v.Tasks()
	out, seen := make([]*kind.Task, 0, len(all)), make(map[*kind.Task]bool, len(all))
	var visit func(t *kind.Task)
	visit = func(t *kind.Task) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		for _, id := range slices.Concat(t.Base.After, t.LiveAfter) {
			visit(p.v.Task(id))
		}
		out = append(out, t)
	}
	for rank := range 3 {
		for _, t := range all {
			if p.rankOf(t) == rank {
				visit(t)
			}
		}
	}
	return out
}

// rankOf puts units behind what they may depend on, and the cluster's objects
// behind all of the machine.
func (p *planner) rankOf(t *kind.Task) int {
	if t.Remote != nil {
		return 2
	}
	if _, ok := p.unitOf(t.ID); ok {
		return 1
	}
	return 0
}

// unitOf is the unit that an id stands for; ok is false for what systemd does not run.
func (p *planner) unitOf(id desired.ID) (name string, ok bool) {
	of, _, named := strings.Cut(string(id), ":")
	r, ok := p.v.Kinds[of].(kind.Runner)
	if !ok || !named {
		return "", false
	}
	return r.Unit(id), true
}

// startedAnew are the units that a task starts anew, and those that may stop as a consequence.
func (p *planner) startedAnew(t *kind.Task) []string {
	names := slices.Clone(t.Revive)
	name, isUnit := p.unitOf(t.ID)
	if isUnit && slices.ContainsFunc(t.Actions, func(a Action) bool {
		return a.Verb == VerbRestart || a.Verb == VerbReload && a.Disruption == DisruptReload
	}) {
		names = append(names, name)
	}
	return names
}

// parents adds the directories that are missing above what the plan creates.
func (p *planner) parents(context.Context) error {
	known := map[string]bool{}
	for _, t := range p.v.Tasks() {
		for _, q := range t.Changes {
			if q.Type == ledger.Directory {
				known[q.Path] = true
			}
		}
	}
	for _, t := range p.v.Tasks() {
		if err := p.parentsOf(t, known); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) parentsOf(t *kind.Task, known map[string]bool) error {
	var made []*kind.Change
	for _, q := range t.Changes {
		if q.Type == ledger.Gone {
			continue
		}
		for dir := path.Dir(q.Path); dir != "/" && !known[dir]; dir = path.Dir(dir) {
			info, err := p.v.Lstat(dir)
			if err != nil {
				return err
			}
			if info != nil && info.Mode.IsDir() {
				break
			}
			if info != nil && !isOurFile(p.v.Ledger, dir) {
				t.Obstruct(notDirectory("make directory", dir, ledger.DescribeType(p.v.Host, dir, info)))
				return nil
			}
			known[dir] = true
			q, err := p.parent(t, dir, info)
			if err != nil || t.Refused != nil {
				return err
			}
			made = append(made, q)
		}
	}
	slices.Reverse(made) // outermost first
	t.Changes = append(made, t.Changes...)
	return nil
}

// parent is a directory on the way to what a task creates. It may take the place of a file of
// berth's, unless that is another owner's.
func (p *planner) parent(t *kind.Task, dir string, info *host.Info) (*kind.Change, error) {
	q := &kind.Change{Type: ledger.Directory, Path: dir, Attrs: host.Attributes{Mode: 0o755}, Parent: true}
	if info == nil {
		return q, nil
	}
	err := p.v.MayChange(q, info)
	if e, ok := errors.AsType[*OwnedElsewhereError](err); ok {
		t.Refuse(e)
		return q, nil
	}
	for i := range t.Actions {
		t.Actions[i].Reason += q.TakenOver()
	}
	return q, err
}
