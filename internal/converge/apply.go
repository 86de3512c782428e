package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// applying is one run of Apply.
type applying struct {
	*planning
	eng    *Engine
	result *Result
	// cut is the journal of a run before this one that did not come to its end.
	cut *journal
	// made are directories that stage made, outermost first.
	made []string
	// recorded is the ledger as it was before this run.
	recorded []byte
	told     sync.Mutex
	keeping  keeping
}

func (e *Engine) apply(ctx context.Context, st *desired.State) (*Result, error) {
	res := &Result{Plan: &Plan{Owner: st.Owner}}
	unlock, err := e.lock(ctx)
	if err != nil {
		return res, err
	}
	err = Safely(func() error { return e.locked(ctx, st, res) })
	return res, errors.Join(err, unlock())
}

func (e *Engine) lock(ctx context.Context) (func() error, error) {
	if _, err := host.MkdirAll(e.opt.Host, runDir); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.opt.LockTimeout)
	defer cancel()
	return e.opt.Host.Lock(ctx, lockPath, e.opt.Command)
}

func (e *Engine) locked(ctx context.Context, st *desired.State, res *Result) error {
	j, err := loadJournal(e.opt.Host)
	if err != nil {
		return err
	}
	if j != nil {
		res.Resumed = true
		if err := j.clear(e.opt.Host); err != nil {
			return err
		}
	}
	p, err := e.plan(ctx, st)
	if err != nil {
		return err
	}
	res.Plan = p.public()
	if err := p.blocked(); err != nil {
		return err
	}
	a := &applying{planning: p, eng: e, result: res, cut: j}
	return a.run(ctx)
}

// run is stage, then commit. A run with nothing to do runs the checks alone.
func (a *applying) run(ctx context.Context) error {
	if a.cut != nil {
		if err := a.resync(); err != nil {
			return err
		}
	}
	if a.result.Plan.Empty() {
		if err := a.stageGraph().run(ctx); err != nil {
			return err
		}
		return a.finish(a.cut != nil)
	}
	if err := a.journal().begin(a.h); err != nil {
		return err
	}
	if err := a.stage(ctx); err != nil {
		return errors.Join(err, a.abort())
	}
	a.noteUnverified()
	if err := a.commit(ctx); err != nil {
		return err
	}
	return a.finish(true)
}

// resync makes durable what a run that was cut off left in place: this one finds
// it equal to what is wanted and would not write it again.
func (a *applying) resync() error {
	names := a.wantedPaths()
	for name := range a.led.Entries {
		names[name] = true
	}
	names[originalsDir+"/x"] = true
	dirs := map[string]bool{}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if info, err := lstat(a.h, path.Dir(name)); err == nil && info != nil && info.Mode.IsDir() {
			dirs[path.Dir(name)] = true
		}
		switch info, err := lstat(a.h, name); {
		case err != nil || info == nil:
		case info.Mode.IsDir():
			dirs[name] = true
		case info.IsRegular():
			files = append(files, name)
		}
	}
	return errors.Join(a.syncDirs(dirs), a.syncEach(files, a.h.SyncFile))
}

// finish does the bookkeeping, and ends the journal of this run or of the one
// that was cut off.
func (a *applying) finish(begun bool) error {
	for _, t := range a.tasks {
		if t.settle == nil {
			continue
		}
		if err := a.settle(t); err != nil {
			return err
		}
	}
	booked, err := a.book(begun)
	if err != nil || !booked && !begun {
		return err
	}
	if err := a.resyncBundle(); err != nil {
		return err
	}
	if err := sweepOriginals(a.h, a.led); err != nil {
		return err
	}
	return (&journal{}).drop(a.h)
}

func (a *applying) settle(t *task) error {
	if err := host.PrivateDir(a.h, stampDir); err != nil {
		return err
	}
	return t.settle()
}

func (a *applying) observer(s Span) {
	a.told.Lock()
	defer a.told.Unlock()
	if !s.End.IsZero() {
		a.result.Timeline = append(a.result.Timeline, s)
	}
	if a.opt.Observer != nil {
		a.opt.Observer(s)
	}
}

func (a *applying) journal() *journal {
	j := &journal{Owner: a.st.Owner, Temps: a.owedBundle()}
	for _, t := range a.tasks {
		if len(t.actions) > 0 {
			j.Actions = append(j.Actions, t.id)
		}
		for _, q := range t.puts {
			switch {
			case q.temporary():
				j.Temps = append(j.Temps, q.path)
			case q.kind == putDir && q.seen == nil:
				j.Dirs = append(j.Dirs, q.path)
			}
		}
		j.Temps = append(j.Temps, t.remade...)
		if u, ok := a.st.Lookup(t.id).(*desired.Unit); ok && t.live != nil {
			j.Temps = append(j.Temps, stampPath(u.Name))
		}
	}
	slices.Sort(j.Dirs)
	return j
}

func (a *applying) newGraph(phase string) *graph {
	return &graph{workers: a.opt.Workers, pick: a.opt.Pick, phase: phase, now: a.h.Now, tell: a.observer}
}

// stageGraph holds the work that shows nothing: checks, requests, downloads,
// temporary files.
func (a *applying) stageGraph() *graph {
	g := a.newGraph("stage")
	for _, t := range a.tasks {
		if t.stage == nil && !hasTemporary(t) {
			continue
		}
		g.nodes = append(g.nodes, &node{id: t.id, verb: t.stageVerb(), field: t.base.Field, after: t.staged,
			do: func(ctx context.Context) error { return a.stageTask(ctx, t) }})
	}
	return g
}

func hasTemporary(t *task) bool { return slices.ContainsFunc(t.puts, (*put).temporary) }

func (a *applying) stage(ctx context.Context) error {
	if err := a.makeDirs(); err != nil {
		return err
	}
	return a.stageGraph().run(ctx)
}

func (a *applying) stageTask(ctx context.Context, t *task) error {
	if t.stage != nil {
		if err := t.stage(ctx, t); err != nil {
			return err
		}
	}
	for _, q := range t.puts {
		if err := prepare(a.h, q); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func prepare(h host.FS, q *put) error {
	switch {
	case q.prepared:
		return nil
	case q.stored != "":
		return host.PrepareFunc(h, q.path, q.attrs, copyOf(h, contentName(q.stored), q.stored))
	case q.kind == putFile:
		return host.Prepare(h, q.path, q.content.Data(), q.attrs)
	case q.kind == putLink:
		if err := removeIfThere(h, host.TempName(q.path)); err != nil {
			return err
		}
		return h.Symlink(q.target, host.TempName(q.path))
	}
	return nil
}

// makeDirs makes the directories that are missing, outermost first.
func (a *applying) makeDirs() error {
	var dirs []*put
	for _, t := range a.tasks {
		for _, q := range t.puts {
			if q.kind == putDir && q.seen == nil {
				dirs = append(dirs, q)
			}
		}
	}
	slices.SortFunc(dirs, func(x, y *put) int { return cmp.Compare(x.path, y.path) })
	for _, q := range dirs {
		if err := a.makeDir(q); err != nil {
			return err
		}
	}
	return nil
}

func (a *applying) makeDir(q *put) error {
	err := a.h.Mkdir(q.path, q.mode())
	if there, _ := lstat(a.h, q.path); errors.Is(err, fs.ErrExist) && there != nil && there.Mode.IsDir() {
		return nil // berth's own state was put there meanwhile
	}
	if err != nil {
		return err
	}
	a.made = append(a.made, q.path)
	if q.attrs.UID != 0 || q.attrs.GID != 0 {
		if err := a.h.Chown(q.path, q.attrs.UID, q.attrs.GID); err != nil {
			return err
		}
	}
	return a.h.SyncDir(path.Dir(q.path))
}

func (a *applying) noteUnverified() {
	for _, t := range a.tasks {
		if t.staging != nil && t.staging.Unverified {
			a.result.Unverified = append(a.result.Unverified, string(t.id)+" from "+t.staging.URL)
		}
	}
}

// abort takes back what stage did. What a run before this one owes stays owed.
func (a *applying) abort() error {
	j := a.journal()
	j.Dirs = a.made
	err := j.clear(a.h)
	if owed := a.owedBundle(); len(owed) > 0 {
		return errors.Join(err, (&journal{Owner: a.st.Owner, Temps: owed}).save(a.h))
	}
	return errors.Join(err, j.drop(a.h))
}
