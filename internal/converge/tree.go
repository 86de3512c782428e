package converge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// tree changes the names of a run: first what shows nothing, directories and temporary files,
// then the names themselves.
type tree struct {
	*record
	// made are directories that were made, outermost first.
	made []string
	// overFiles are directories that take the place of files, overDirs files that take the
	// place of directories.
	overFiles, overDirs []string
}

func newTree(r *record) *tree {
	x := &tree{record: r}
	for _, t := range r.v.Tasks() {
		for _, q := range t.Changes {
			if q.OverFile() {
				x.overFiles = append(x.overFiles, q.Path)
			}
			if q.OverDirectory() {
				x.overDirs = append(x.overDirs, q.Path)
			}
		}
	}
	return x
}

// below says whether a change is in a directory that takes the place of a file.
func (x *tree) below(q *kind.Change) bool {
	return slices.ContainsFunc(x.overFiles, func(dir string) bool { return strings.HasPrefix(q.Path, dir+"/") })
}

func (x *tree) prepare(q *kind.Change) error {
	switch {
	case q.Prepared:
		return nil
	case q.Stored != "":
		return host.PrepareFunc(x.v.Host, q.Path, q.Attrs, ledger.CopyOf(x.v.Host, ledger.ContentName(q.Stored), q.Stored))
	case q.Type == ledger.File:
		return host.Prepare(x.v.Host, q.Path, q.Content.Data(), x.attributes(q))
	case q.Type == ledger.Link:
		if err := ledger.RemoveIfThere(x.v.Host, host.TempName(q.Path)); err != nil {
			return err
		}
		return x.v.Host.Symlink(q.Target, host.TempName(q.Path))
	}
	return nil
}

// attributes are those of a file that is about to be written. One that will be berth's
// says so itself; an original that comes back, a part of somebody's file, a seed and a
// repair of what was adopted do not.
func (x *tree) attributes(q *kind.Change) host.Attributes {
	a := q.Attrs
	if c, claimed := x.run.Claims[q.Path]; claimed && !c.Entry.Adopted && !c.Entry.Seed {
		a.Provenance = q.Provenance()
	}
	return a
}

// makeDirs makes the directories that are missing, outermost first; their names
// become durable together.
func (x *tree) makeDirs() error {
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

func (x *tree) makeDir(q *kind.Change) error {
	err := x.v.Host.Mkdir(q.Path, q.Attrs.Mode)
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
	return x.v.Host.Chown(q.Path, q.Attrs.UID, q.Attrs.GID)
}

// clear takes away the directories and temporary files of a run that changes no name.
func (x *tree) clear() error {
	err := x.run.Clear(x.v.Host)
	for _, dir := range slices.Backward(x.made) {
		if names, lerr := x.v.Host.ReadDir(dir); lerr != nil || len(names) > 0 {
			continue
		}
		err = errors.Join(err, ledger.RemoveIfThere(x.v.Host, dir))
	}
	return err
}

func (x *tree) hasLate() bool {
	return slices.ContainsFunc(x.v.Tasks(), func(t *kind.Task) bool {
		return slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return q.Late })
	})
}

func (p *planner) syncDirs(dirs map[string]bool) error {
	return p.syncEach(slices.Sorted(maps.Keys(dirs)), p.v.Host.SyncDir)
}

func (p *planner) syncEach(names []string, sync func(string) error) error {
	g := errgroup.Group{}
	g.SetLimit(p.opt.Workers)
	for _, name := range names {
		g.Go(func() error { return Safely(func() error { return sync(name) }) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make names durable: %w", err)
	}
	return nil
}
