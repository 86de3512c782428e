package converge

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/internal/converge/kind"
)

// stage does what shows nothing: checks, requests, downloads, temporary files.
func (x *executor) stage(ctx context.Context) error {
	if err := x.makeDirs(); err != nil {
		return err
	}
	if err := x.stageGraph().run(ctx); err != nil {
		return err
	}
	x.noteUnverified()
	return x.mark()
}

func (x *executor) stageGraph() *graph {
	g := x.newGraph("stage")
	for _, t := range x.v.Tasks() {
		if t.Stage == nil && !t.Temporary() {
			continue
		}
		g.nodes = append(g.nodes, &node{id: t.ID, verb: t.StageVerb(), field: t.Base.Field, after: t.StagedAfter,
			do: func(ctx context.Context) error { return x.stageTask(ctx, t) }})
	}
	return g
}

func (x *executor) stageTask(ctx context.Context, t *kind.Task) error {
	if t.Stage != nil {
		if err := t.Stage(ctx, t); err != nil {
			return err
		}
	}
	for _, q := range t.Changes {
		if x.below(q) {
			continue // there is no directory yet
		}
		if err := x.prepare(q); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// noteUnverified names what came without a digest until now.
func (x *executor) noteUnverified() {
	x.res.Unverified = nil
	for _, t := range x.v.Tasks() {
		if t.Fetched != nil && t.Fetched.Unverified {
			x.res.Unverified = append(x.res.Unverified, string(t.ID)+" from "+t.Fetched.URL)
		}
	}
}

// abort takes back what stage did. What a run before this one owes stays owed, and
// so does what stopped as a consequence of what this one stopped.
func (x *executor) abort() error {
	err := x.clear()
	if x.v.Ledger.Owed != nil || x.stopped {
		return err
	}
	return errors.Join(err, x.v.Ledger.Sweep(x.v.Host), x.v.Ledger.Aborted(x.v.Host, x.run))
}
