package converge

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
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

// below says whether a change is in a directory that takes the place of a file.
func (x *executor) below(q *kind.Change) bool {
	return slices.ContainsFunc(x.overFiles, func(dir string) bool { return strings.HasPrefix(q.Path, dir+"/") })
}

func (x *executor) prepare(q *kind.Change) error {
	switch {
	case q.Prepared:
		return nil
	case q.Stored != "":
		return host.PrepareFunc(x.h, q.Path, q.Attrs, ledger.CopyOf(x.h, ledger.ContentName(q.Stored), q.Stored))
	case q.Type == ledger.File:
		return host.Prepare(x.h, q.Path, q.Content.Data(), x.attributes(q))
	case q.Type == ledger.Link:
		if err := ledger.RemoveIfThere(x.h, host.TempName(q.Path)); err != nil {
			return err
		}
		return x.h.Symlink(q.Target, host.TempName(q.Path))
	}
	return nil
}

// attributes are those of a file that is about to be written. One that will be berth's
// says so itself; an original that comes back, a part of somebody's file, a seed and a
// repair of what was adopted do not.
func (x *executor) attributes(q *kind.Change) host.Attributes {
	a := q.Attrs
	if c, claimed := x.run.Claims[q.Path]; claimed && !c.Entry.Adopted && !c.Entry.Seed {
		a.Provenance = q.Provenance()
	}
	return a
}

// makeDirs makes the directories that are missing, outermost first; their names
// become durable together.
func (x *executor) makeDirs() error {
	var dirs []*kind.Change
	for _, t := range x.v.Tasks() {
		for _, q := range t.Changes {
			if q.New() && !x.below(q) {
				dirs = append(dirs, q)
			}
		}
	}
	slices.SortFunc(dirs, func(a, b *kind.Change) int { return cmp.Compare(a.Path, b.Path) })
	parents := map[string]bool{}
	for _, q := range dirs {
		if err := x.makeDir(q); err != nil {
			return err
		}
		parents[path.Dir(q.Path)] = true
		if q.Attrs.UID != 0 || q.Attrs.GID != 0 {
			parents[q.Path] = true
		}
	}
	return x.syncDirs(parents)
}

func (x *executor) makeDir(q *kind.Change) error {
	err := x.h.Mkdir(q.Path, q.Attrs.Mode)
	if there, _ := x.v.Lstat(q.Path); errors.Is(err, fs.ErrExist) && there != nil && there.Mode.IsDir() {
		return nil // berth's own state was put there meanwhile
	}
	if err != nil {
		return err
	}
	x.made = append(x.made, q.Path)
	if q.Attrs.UID == 0 && q.Attrs.GID == 0 {
		return nil
	}
	return x.h.Chown(q.Path, q.Attrs.UID, q.Attrs.GID)
}

// noteUnverified names what came without a digest until now.
func (x *executor) noteUnverified() {
	x.result.Unverified = nil
	for _, t := range x.v.Tasks() {
		if t.Fetched != nil && t.Fetched.Unverified {
			x.result.Unverified = append(x.result.Unverified, string(t.ID)+" from "+t.Fetched.URL)
		}
	}
}

// abort takes back what stage did. What a run before this one owes stays owed, and
// so does what stopped as a consequence of what this one stopped.
func (x *executor) abort() error {
	err := x.run.Clear(x.h)
	for _, dir := range slices.Backward(x.made) {
		if names, lerr := x.h.ReadDir(dir); lerr != nil || len(names) > 0 {
			continue
		}
		err = errors.Join(err, ledger.RemoveIfThere(x.h, dir))
	}
	if x.led.Owed != nil || x.stopped {
		return err
	}
	return errors.Join(err, x.led.Sweep(x.h), x.led.Aborted(x.h, x.run))
}
