package converge

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// planning is one comparison of a state with a machine.
type planning struct {
	opt Options
	h   host.Host
	st  *desired.State
	led *ledger
	// tasks are in the order of the state, then removals.
	tasks []*task
	byID  map[desired.ID]*task
	// content is what each path of the state will hold, where it is known.
	mu      sync.Mutex
	content map[string]*put
	// changes are the paths that the tree's part of the plan changes, deleted those
	// that it deletes.
	changes, deleted map[string]bool
	// vanished are names of the ledger that are neither there nor wanted.
	vanished []string
	// left are names that this owner wants no more, and that are not only berth's.
	left []string
	// bundling keeps two anchors from rebuilding the bundle at once, reloading
	// two units from reloading systemd at once.
	bundling, reloading sync.Mutex
	// rebuilt: the bundle was made anew in this run; reloaded: systemd has read the
	// definitions since the names changed.
	rebuilt, reloaded bool
}

// plan observes everything in parallel: first what stands in the tree and what
// goes from it, then the units, whose state depends on what happens to their
// files.
func (e *Engine) plan(ctx context.Context, st *desired.State) (*planning, error) {
	led, err := loadLedger(e.opt.Host)
	if err != nil {
		return nil, err
	}
	p := &planning{opt: e.opt, h: e.opt.Host, st: st, led: led, byID: map[desired.ID]*task{}, content: map[string]*put{}}
	for _, r := range st.Resources {
		t := &task{id: r.ID(), base: r.Order()}
		p.tasks = append(p.tasks, t)
		p.byID[t.id] = t
	}
	for _, pass := range []func(context.Context) error{p.observeAll(isCredential), p.observeAll(isTree), p.removals, p.observeAll(isUnit)} {
		if err := pass(ctx); err != nil {
			return nil, err
		}
		p.noteChanges()
	}
	if err := p.obstacles(); err != nil {
		return nil, err
	}
	return p, p.parents()
}

func isCredential(r desired.Resource) bool { return r.Kind() == "credential" }
func isUnit(r desired.Resource) bool       { return r.Kind() == "unit" }
func isTree(r desired.Resource) bool       { return !isCredential(r) && !isUnit(r) }

func (p *planning) observeAll(want func(desired.Resource) bool) func(context.Context) error {
	return func(ctx context.Context) error { return p.observe(ctx, want) }
}

func (p *planning) observe(ctx context.Context, want func(desired.Resource) bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.opt.Workers)
	for i, r := range p.st.Resources {
		if !want(r) {
			continue
		}
		g.Go(func() error {
			err := Safely(func() error { return p.one(ctx, p.tasks[i], r) })
			if e, ok := errors.AsType[*OwnedElsewhereError](err); ok {
				p.tasks[i].refuse(e)
				return nil
			}
			if err != nil {
				return &ActionError{ID: r.ID(), Verb: VerbCheck, Field: r.Order().Field, Err: err}
			}
			return nil
		})
	}
	return g.Wait()
}

func (p *planning) one(ctx context.Context, t *task, r desired.Resource) error {
	switch r := r.(type) {
	case *desired.File:
		return p.file(t, r)
	case *desired.Directory:
		return p.directory(t, r)
	case *desired.Link:
		return p.link(t, r)
	case *desired.Unit:
		return p.unit(ctx, t, r)
	case *desired.Artifact:
		return p.artifact(ctx, t, r)
	case *desired.Module:
		return p.module(t, r)
	case *desired.Sysctl:
		return p.sysctl(t, r)
	case *desired.TrustAnchor:
		return p.trust(t, r)
	case *desired.ClientCertificate:
		return p.credential(t, r)
	case *desired.ServingCertificate:
		return p.serving(t, r)
	case *desired.Image:
		return p.image(ctx, t, r)
	case *desired.Check:
		return p.check(t, r)
	}
	return fmt.Errorf("no kind %q", r.Kind())
}

// expect notes what a path will hold when the plan is done.
func (p *planning) expect(q *put) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content[q.path] = q
}

// expected returns what a path will hold, or nil where the plan says nothing.
func (p *planning) expected(path string) *put {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.content[path]
}

// noteChanges fixes, before units are planned, which paths change.
func (p *planning) noteChanges() {
	p.changes, p.deleted = map[string]bool{}, map[string]bool{}
	for _, t := range p.tasks {
		for _, q := range t.puts {
			p.changes[q.path] = q.kind != putAttributes
			if q.kind == putDelete {
				p.deleted[q.path] = true
			}
		}
		for _, name := range t.remade {
			p.changes[name] = true
		}
	}
}

// parents adds the directories that are missing above what the plan creates.
func (p *planning) parents() error {
	known := map[string]bool{}
	for _, t := range p.tasks {
		for _, q := range t.puts {
			if q.kind == putDir {
				known[q.path] = true
			}
		}
	}
	for _, t := range p.tasks {
		if err := p.parentsOf(t, known); err != nil {
			return err
		}
	}
	return nil
}

func (p *planning) parentsOf(t *task, known map[string]bool) error {
	var made []*put
	for _, q := range t.puts {
		if q.kind == putDelete {
			continue
		}
		for dir := path.Dir(q.path); dir != "/" && !known[dir]; dir = path.Dir(dir) {
			info, err := lstat(p.h, dir)
			if err != nil {
				return err
			}
			if info != nil {
				break
			}
			known[dir] = true
			made = append(made, &put{kind: putDir, path: dir, attrs: host.Attributes{Mode: 0o755}, parent: true})
		}
	}
	slices.SortFunc(made, func(a, b *put) int { return strings.Compare(a.path, b.path) })
	t.puts = append(made, t.puts...)
	return nil
}

// public is the plan as it is printed: in an order in which it could be done.
func (p *planning) public() *Plan {
	out := &Plan{Owner: p.st.Owner, Actions: []Action{}}
	for _, t := range p.sorted() {
		out.Actions = append(out.Actions, t.actions...)
		out.Deferred = append(out.Deferred, t.deferred...)
		out.Remarks = append(out.Remarks, t.remarks...)
		out.Kept = append(out.Kept, t.kept...)
	}
	return out
}

// blocked are the errors of all that can't be done, in the order of the state.
func (p *planning) blocked() error {
	var errs []error
	for _, t := range p.tasks {
		errs = append(errs, t.blocked)
	}
	return errors.Join(errs...)
}

// sorted orders tasks so that each follows what it comes after; removals first,
// units last, ties by id.
func (p *planning) sorted() []*task {
	var out []*task
	seen := map[*task]bool{}
	var visit func(t *task)
	visit = func(t *task) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		for _, id := range t.base.After {
			visit(p.byID[id])
		}
		out = append(out, t)
	}
	for _, last := range []bool{false, true} {
		for _, t := range p.tasks {
			if strings.HasPrefix(string(t.id), "unit:") == last {
				visit(t)
			}
		}
	}
	return out
}
