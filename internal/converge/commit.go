package converge

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/desired"
)

// commit makes the staged state visible: originals and ledger first, then the
// names, then what runs.
func (a *applying) commit(ctx context.Context) error {
	if err := a.unchanged(); err != nil {
		return errors.Join(err, a.abort())
	}
	if err := a.record(); err != nil {
		return errors.Join(err, a.abort())
	}
	if err := a.before(ctx); err != nil {
		return err
	}
	if err := a.unchanged(); err != nil { // a unit may take its time to stop
		return errors.Join(err, a.unrecord(), a.abort())
	}
	g := a.newGraph("commit")
	g.nodes = []*node{{id: placeID, verb: VerbUpdate, do: func(context.Context) error { return a.place(false) }}}
	if err := g.run(ctx); err != nil {
		return err
	}
	return a.liveGraph().run(ctx)
}

// record keeps originals and writes the ledger, before the first byte of a
// target changes.
func (a *applying) record() error {
	var err error
	if a.recorded, err = a.led.print(); err != nil {
		return err
	}
	g := errgroup.Group{}
	g.SetLimit(a.opt.Workers)
	var mu sync.Mutex
	for _, t := range a.tasks {
		for _, q := range t.puts {
			if q.forget {
				continue
			}
			g.Go(func() error { return Safely(func() error { return a.recordPut(&mu, t, q) }) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if _, err := a.enter(); err != nil {
		return err
	}
	return a.led.save(a.h)
}

// unrecord takes back what the ledger claims for names that did not change: what
// stands there is not berth's, and the next run has to keep it.
func (a *applying) unrecord() error { return writeLedger(a.h, a.recorded) }

func (a *applying) recordPut(mu *sync.Mutex, t *task, q *put) error {
	var original string
	if q.foreign {
		var err error
		if original, err = a.keeping.original(a.h, q, a.st.Owner); err != nil {
			return &ActionError{ID: t.id, Verb: t.verb(), Field: t.base.Field, Err: err}
		}
	}
	mark, err := printed(a.h, q)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	f, isFile := a.st.Lookup(t.id).(*desired.File)
	if q.kind == putAttributes && !q.foreign && !a.led.Entries[q.path].InPlace {
		return nil
	}
	a.led.claim(q, a.st.Owner, original, isFile && f.Life == desired.Seed)
	a.led.note(q.path, mark)
	if len(q.from) > 0 {
		return a.attribute(q.path)
	}
	return nil
}

// before runs what must happen while the old definitions still stand.
func (a *applying) before(ctx context.Context) error {
	for _, t := range a.tasks {
		if t.before == nil {
			continue
		}
		if err := t.before(ctx); err != nil {
			return &ActionError{ID: t.id, Verb: t.verb(), Field: t.base.Field, Err: err}
		}
	}
	return nil
}

// The nodes of the timeline that stand for many names at once.
const (
	// placeID is the moment at which the new state becomes visible.
	placeID desired.ID = "names"
	// announceID is the Node, created ahead of kubelet.
	announceID desired.ID = "node"
	// lateID is what makes units start at boot.
	lateID desired.ID = "enablement"
)

// favour does what may fail without harm, and says so if it does.
func (a *applying) favour(ctx context.Context, t *task) error {
	if err := t.favour(ctx); err != nil && ctx.Err() == nil {
		a.told.Lock()
		defer a.told.Unlock()
		a.result.Plan.Remarks = append(a.result.Plan.Remarks, "the Node was not created ahead of kubelet: "+err.Error())
	}
	return ctx.Err()
}

// liveGraph holds what changes the running machine. Order passes through tasks
// that have nothing to do themselves.
func (a *applying) liveGraph() *graph {
	g := a.newGraph("commit")
	for _, t := range a.sorted() {
		if t.live != nil {
			g.nodes = append(g.nodes, &node{id: t.id, verb: t.verb(), field: t.base.Field, after: a.liveBefore(t), do: t.live})
		}
	}
	for _, t := range a.tasks {
		if t.favour != nil {
			g.nodes = append(g.nodes, &node{id: announceID, verb: VerbCreate, do: func(ctx context.Context) error { return a.favour(ctx, t) }})
		}
	}
	if a.hasLate() {
		g.nodes = append(g.nodes, &node{id: lateID, verb: VerbEnable,
			do: func(context.Context) error { return a.place(true) }})
	}
	return g
}

func (a *applying) hasLate() bool {
	return slices.ContainsFunc(a.tasks, func(t *task) bool {
		return slices.ContainsFunc(t.puts, func(q *put) bool { return q.late })
	})
}

// liveBefore finds the live tasks that a task comes after, directly or through
// others.
func (a *applying) liveBefore(t *task) []desired.ID {
	var out []desired.ID
	seen := map[desired.ID]bool{t.id: true}
	var visit func(ids []desired.ID)
	visit = func(ids []desired.ID) {
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			dep := a.byID[id]
			if dep == nil {
				continue
			}
			if dep.live != nil {
				out = append(out, id)
			}
			visit(dep.base.After)
		}
	}
	visit(t.base.After)
	return out
}
