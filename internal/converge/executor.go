package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// executor carries out one plan: stage, then commit.
type executor struct {
	*attempt
	*tree
	// stopped says that something was stopped before the names change.
	stopped bool
	// came are the ids that the commit has come to; named: all names are in place, but for
	// those that come late.
	came  map[desired.ID]bool
	named bool
}

// execute is stage, then commit. A run with nothing to do runs the checks alone.
func (x *executor) execute(ctx context.Context) error {
	if x.v.Ledger.Owed != nil {
		if err := x.resync(); err != nil {
			return err
		}
	}
	if x.res.Plan.Empty() {
		if err := x.stageGraph().run(ctx); err != nil {
			return err
		}
		if err := x.try.goOn(ctx, x); err != nil {
			return fmt.Errorf("go on with the trial: %w", err)
		}
		return x.idle()
	}
	soon, over := context.WithCancel(ctx)
	defer over()
	if slices.ContainsFunc(x.v.Tasks(), func(t *kind.Task) bool { _, isUnit := x.unitOf(t.ID); return isUnit && t.Live != nil }) {
		x.v.Host.ExpectJobs(soon)
	}
	if err := x.begin(ctx); err != nil {
		return err
	}
	x.v.Begin()
	x.came = map[desired.ID]bool{}
	if err := x.stage(ctx); err != nil {
		return errors.Join(err, x.abort())
	}
	if x.scope.Ready != nil {
		if err := x.scope.Ready(); err != nil {
			return errors.Join(err, x.abort())
		}
	}
	if err := x.drain(ctx); err != nil {
		return errors.Join(err, x.abort())
	}
	if err := x.try.arm(ctx, x); err != nil {
		return errors.Join(fmt.Errorf("begin the trial: %w", err), x.abort())
	}
	err := x.commit(ctx)
	x.noteUnverified()
	x.res.Begun = append(x.res.Begun, x.begun(err)...)
	if err != nil {
		return err
	}
	return x.finish()
}

// begun are the actions that the commit has come to, all of them where it failed in nothing.
func (x *executor) begun(err error) []Action {
	if err == nil {
		return x.res.Plan.Actions
	}
	return slices.DeleteFunc(slices.Clone(x.res.Plan.Actions), func(a Action) bool {
		t := x.v.Task(a.ID)
		named := t != nil && x.named && slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return !q.Late })
		return !named && !x.came[a.ID]
	})
}

func (x *executor) observer(s Span) {
	if s.Phase == "commit" {
		x.told.Lock()
		x.came[s.ID] = true
		x.told.Unlock()
	}
	x.tell(s)
}

func (x *executor) newGraph(phase string) *graph {
	return &graph{workers: x.opt.Workers, pick: x.opt.Pick, phase: phase, now: x.v.Host.Now, tell: x.observer}
}
