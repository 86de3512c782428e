package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// executor is one run of Apply.
type executor struct {
	*planner
	result *Result
	// run is what the ledger says of this run.
	run *ledger.Run
	// made are directories that stage made, outermost first.
	made []string
	// stopped says that something was stopped before the names change.
	stopped bool
	// overFiles are directories that take the place of files.
	overFiles []string
	// overDirs are files that take the place of directories.
	overDirs []string
	told     sync.Mutex
	// came are the ids that the commit has come to; named: all names are in place, but for
	// those that come late.
	came  map[desired.ID]bool
	named bool
	// try is the run as a trial; nil where it is none.
	try *try
	// live is Scope.Live.
	live func()
}

func (e *Engine) apply(ctx context.Context, st *desired.State, s Scope) (*Result, error) {
	res := &Result{Plan: &Plan{Owner: st.Owner}}
	return res, e.exclusively(ctx, func() error { return e.restore(ctx, st, s, e.locked(ctx, st, res, s)) })
}

// exclusively holds the machine's lock while f runs.
func (e *Engine) exclusively(ctx context.Context, f func() error) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	err = Safely(f)
	return errors.Join(err, unlock())
}

func (e *Engine) lock(ctx context.Context) (func() error, error) {
	if _, err := host.MkdirAll(e.opt.Host, paths.RunDir); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.opt.LockTimeout)
	defer cancel()
	return e.opt.Host.Lock(ctx, ledger.LockPath, e.opt.Command)
}

// locked is a run with all that a trial adds to it. What nothing is asked of any
// more has no contract.
func (e *Engine) locked(ctx context.Context, st *desired.State, res *Result, s Scope) error {
	if s.IDs != nil {
		alone, err := e.partAlone(st.Owner)
		if err != nil {
			return err
		}
		if alone {
			return e.run(ctx, st, res, nil, s)
		}
		s.IDs = nil
	}
	defer func() { e.kept = nil }() // they are for this run
	t, err := e.newTry(ctx, st, res)
	if err != nil {
		return err
	}
	if t != nil {
		t.partly = s.Decide != nil
	}
	ends := len(st.Resources) == 0 && !e.opt.Offline
	if ends && t == nil { // where nobody goes back, the next boot does not either
		if err := e.forget(ctx, st.Owner); err != nil {
			return err
		}
	}
	err = Safely(func() error { return e.run(ctx, st, res, t, s) })
	if err == nil && ends && t != nil {
		return e.forget(ctx, st.Owner)
	}
	return t.end(ctx, err)
}

// partAlone says whether a part may be looked at by itself, without a trial: nothing is on
// trial, and the contract is the last good one, or there is none. Then what a part brings
// back is what was confirmed, and there is nothing better to go back to.
func (e *Engine) partAlone(owner desired.Owner) (bool, error) {
	n, err := trial.Load(e.opt.Host)
	if n != nil || isTorn(err) {
		return false, nil
	}
	if err != nil || e.opt.Trial == nil || e.opt.Offline {
		return err == nil, err
	}
	other, _, err := e.known.Good(e.opt.Host, owner, &e.opt.Trial.Contract)
	return other == nil, err
}

// run brings the machine to a state; t may be nil.
func (e *Engine) run(ctx context.Context, st *desired.State, res *Result, t *try, s Scope) error {
	led, err := e.ledger.Load(e.opt.Host)
	if err != nil {
		return err
	}
	if led.Owed != nil {
		res.Resumed, s.IDs = true, nil
		if err := led.Owed.Clear(e.opt.Host); err != nil {
			return err
		}
	}
	p, err := e.plan(ctx, st, led, s)
	if err != nil {
		return err
	}
	res.Plan = p.public()
	if t != nil {
		res.Plan.Remarks = append(res.Plan.Remarks, t.remarks...)
	}
	if err := p.blocked(); err != nil {
		return err
	}
	if waiting := p.waiting(); len(waiting) > 0 {
		return e.apart(ctx, p, waiting, res, t)
	}
	x := &executor{planner: p, result: res, try: t, live: s.Live}
	return x.execute(ctx)
}

// execute is stage, then commit. A run with nothing to do runs the checks alone.
func (x *executor) execute(ctx context.Context) error {
	if x.led.Owed != nil {
		if err := x.resync(); err != nil {
			return err
		}
	}
	if x.result.Plan.Empty() {
		if err := x.stageGraph().run(ctx); err != nil {
			return err
		}
		if err := x.try.goOn(ctx, x); err != nil {
			return fmt.Errorf("go on with the trial: %w", err)
		}
		return x.idle()
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
	x.result.Begun = append(x.result.Begun, x.begun(err)...)
	if err != nil {
		return err
	}
	return x.finish()
}

// begun are the actions that the commit has come to, all of them where it failed in nothing.
func (x *executor) begun(err error) []Action {
	if err == nil {
		return x.result.Plan.Actions
	}
	return slices.DeleteFunc(slices.Clone(x.result.Plan.Actions), func(a Action) bool {
		t := x.v.Task(a.ID)
		named := t != nil && x.named && slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return !q.Late })
		return !named && !x.came[a.ID]
	})
}

// resync makes durable what a run that was cut off left in place, or what was taken away of
// it: this one finds it as it is wanted and would not write it again.
func (x *executor) resync() error {
	names := x.wanted()
	for _, name := range slices.AppendSeq(slices.Concat(x.led.Owed.Drops, x.led.Owed.Temps), maps.Keys(x.led.Entries)) {
		names[name] = true
	}
	names[ledger.OriginalsDir+"/x"] = true
	dirs := map[string]bool{}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !ledger.IsPath(name) {
			continue
		}
		if info, err := x.v.Lstat(path.Dir(name)); err == nil && info != nil && info.Mode.IsDir() {
			dirs[path.Dir(name)] = true
		}
		switch info, err := x.v.Lstat(name); {
		case err != nil || info == nil:
		case info.Mode.IsDir():
			dirs[name] = true
		case info.IsRegular():
			files = append(files, name)
		}
	}
	return errors.Join(x.syncDirs(dirs), x.syncEach(files, x.h.SyncFile))
}

// idle is the bookkeeping of a run that had nothing to do.
func (x *executor) idle() error {
	owed := x.led.Owed
	entered, err := x.enter()
	if err != nil {
		return err
	}
	run := x.newRun()
	if !entered && owed == nil && len(run.Drops)+len(run.Leaves)+len(run.Claims) == 0 {
		return x.finalize()
	}
	if err := x.finalize(); err != nil {
		return err
	}
	x.led.Enter(run)
	if err := x.complete(); err != nil {
		return err
	}
	// A run that is killed before the ledger is durable leaves the next one to write it.
	note := &ledger.Run{ID: run.ID, Owner: run.Owner}
	if err := x.led.Begin(x.h, note); err != nil {
		return err
	}
	return x.led.Done(x.h, note, nil)
}

// finish ends a run that changed something.
func (x *executor) finish() error {
	if err := x.finalize(); err != nil {
		return err
	}
	x.led.Enter(x.run)
	if err := x.complete(); err != nil {
		return err
	}
	seen, err := x.seen()
	if err != nil {
		return err
	}
	return x.led.Done(x.h, x.run, seen)
}

// seen is the identity of each download that this run gave its name. Copies of another
// root, such as an image, are other files: of those nothing is said.
func (x *executor) seen() (map[string]string, error) {
	out := map[string]string{}
	for name, c := range x.run.Claims {
		if !c.Prepared || x.opt.Offline {
			continue
		}
		info, err := x.v.Lstat(name)
		if err != nil {
			return nil, err
		}
		out[name] = ledger.Seen(info)
	}
	return out, nil
}

func (x *executor) finalize() error {
	for _, t := range x.v.Tasks() {
		if t.Finalize == nil {
			continue
		}
		if err := t.Finalize(); err != nil {
			return err
		}
	}
	return nil
}

// complete puts originals in order, and what a run before this one owed.
func (x *executor) complete() error {
	if owed := x.led.Owed; owed != nil {
		for _, k := range x.resumers() {
			if err := k.Resume(x.v, owed.Regenerated); err != nil {
				return err
			}
		}
	}
	return x.led.Sweep(x.h)
}

func (x *executor) resumers() (out []kind.Resumer) {
	for _, name := range slices.Sorted(maps.Keys(x.kinds)) {
		if k, ok := x.kinds[name].(kind.Resumer); ok {
			out = append(out, k)
		}
	}
	return out
}

func (x *executor) observer(s Span) {
	x.told.Lock()
	defer x.told.Unlock()
	if s.Phase == "commit" {
		x.came[s.ID] = true
	}
	if !s.End.IsZero() {
		x.result.Timeline = append(x.result.Timeline, s)
	}
	if x.opt.Observer != nil {
		x.opt.Observer(s)
	}
}

func (x *executor) newGraph(phase string) *graph {
	return &graph{workers: x.opt.Workers, pick: x.opt.Pick, phase: phase, now: x.h.Now, tell: x.observer}
}

func (x *executor) syncDirs(dirs map[string]bool) error {
	return x.syncEach(slices.Sorted(maps.Keys(dirs)), x.h.SyncDir)
}

func (x *executor) syncEach(names []string, sync func(string) error) error {
	g := errgroup.Group{}
	g.SetLimit(x.opt.Workers)
	for _, name := range names {
		g.Go(func() error { return Safely(func() error { return sync(name) }) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make names durable: %w", err)
	}
	return nil
}
