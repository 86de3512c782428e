package converge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// ErrChanged is a resource that another changed between plan and act.
var ErrChanged error = changedError{}

type changedError struct{}

func (changedError) Error() string {
	return "changed meanwhile by somebody else; run again to plan anew"
}

// Hint says what to do where it happens again.
func (changedError) Hint() string {
	return "Run it again: it plans anew. If it happens each time, find out what else writes there."
}

// nameChange is one change with the task that it belongs to.
type nameChange struct {
	t *kind.Task
	q *kind.Change
	// displaced: what stood there waits under another name.
	displaced bool
	// touched: what stands there was made, or changed in place.
	touched bool
}

// commit gives everything its name and makes the names durable, each directory
// once, and what was changed in place. A name that can't be had takes all others
// back: undone says that then nothing of the run is left, as if it had failed in stage.
func (x *tree) commit(late bool) (undone bool, err error) {
	todo, goneDirs := x.nameChanges(late)
	for i, p := range todo {
		if err := x.commitName(p, len(todo) > 1); err != nil {
			err = p.t.Failed(err)
			undone, lost := x.takeBack(todo[:i+1], late)
			return undone, errors.Join(err, lost)
		}
	}
	dirs, files := map[string]bool{}, []string{}
	for _, p := range append(todo, goneDirs...) {
		if err := x.finalizeOne(p); err != nil {
			return false, p.t.Failed(err)
		}
		noteDirs(p.q, dirs)
		if p.q.Type == ledger.Attributes {
			files = append(files, p.q.Path)
		}
	}
	for _, dir := range x.overDirs {
		maps.DeleteFunc(dirs, func(name string, _ bool) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
	}
	return false, errors.Join(x.syncDirs(dirs), x.syncEach(files, x.v.Host.SyncFile))
}

// finalizeOne makes final what was done to one name, when all others are in place.
func (x *tree) finalizeOne(p *nameChange) error {
	if p.displaced {
		return x.v.Host.Remove(ledger.DisplacedName(p.q.Path))
	}
	if !isGoneDir(p.q) || x.replaced(p.q) { // that made way for a file, and is gone
		return nil
	}
	if err := x.unchangedOne(p.q); err != nil {
		return err
	}
	return changedIfNotEmpty(ledger.RemoveIfThere(x.v.Host, p.q.Path))
}

func isGoneDir(q *kind.Change) bool {
	return q.Type == ledger.Gone && q.Seen != nil && q.Seen.Mode.IsDir()
}

// nameChanges are the changes in the order in which names change: what goes, the
// deepest first, then directories in place of files, then the rest in the order of
// the plan. Directories that go are empty when all that is final.
func (x *tree) nameChanges(late bool) (todo, goneDirs []*nameChange) {
	var gone, dirs, rest []*nameChange
	for _, t := range x.sorted() {
		for _, q := range t.Changes {
			switch p := (&nameChange{t: t, q: q}); {
			case q.Late != late || q.New() && !x.below(q):
			case isGoneDir(q) && !x.replaced(q):
				goneDirs = append(goneDirs, p)
			case q.Type == ledger.Gone:
				gone = append(gone, p)
			case q.OverFile() || q.New():
				dirs = append(dirs, p)
			default:
				rest = append(rest, p)
			}
		}
	}
	deepest := func(a, b *nameChange) int { return cmp.Compare(b.q.Path, a.q.Path) }
	slices.SortFunc(gone, deepest)
	slices.SortFunc(goneDirs, deepest)
	slices.SortFunc(dirs, func(a, b *nameChange) int { return cmp.Compare(a.q.Path, b.q.Path) })
	return slices.Concat(gone, dirs, rest), goneDirs
}

// replaced says whether a name is in a directory that makes way for a file.
func (x *tree) replaced(q *kind.Change) bool {
	return slices.ContainsFunc(x.overDirs, func(dir string) bool { return strings.HasPrefix(q.Path, dir+"/") })
}

// noteDirs marks the directories whose names a change has changed.
func noteDirs(q *kind.Change, dirs map[string]bool) {
	dirs[path.Dir(q.Path)] = true
	switch q.Type {
	case ledger.Gone:
		delete(dirs, q.Path)
	case ledger.Directory:
		dirs[q.Path] = true
	}
}

// commitName looks once more, right before it acts.
func (x *tree) commitName(p *nameChange, keep bool) error {
	q := p.q
	if err := x.unchangedOne(q); err != nil {
		return err
	}
	if x.below(q) {
		if err := x.prepare(q); err != nil {
			return err
		}
	}
	switch {
	case isGoneDir(q):
		return changedIfNotEmpty(ledger.RemoveIfThere(x.v.Host, q.Path))
	case q.Type == ledger.Gone:
		return x.remove(p, keep && !x.replaced(q))
	case q.OverFile() || q.New():
		return x.makeInPlace(p)
	case q.InPlace():
		p.touched = true
		return errors.Join(x.v.Host.Chown(q.Path, q.Attrs.UID, q.Attrs.GID), x.v.Host.Chmod(q.Path, q.Attrs.Mode))
	}
	return x.rename(p, keep)
}

func (x *tree) remove(p *nameChange, keep bool) error {
	if !keep || p.q.Seen == nil {
		return ledger.RemoveIfThere(x.v.Host, p.q.Path)
	}
	err := x.v.Host.Rename(p.q.Path, ledger.DisplacedName(p.q.Path))
	p.displaced = err == nil
	return err
}

// makeInPlace makes a directory where a file is, or in one that was just made.
func (x *tree) makeInPlace(p *nameChange) error {
	if p.q.Seen != nil {
		if err := x.v.Host.Rename(p.q.Path, ledger.DisplacedName(p.q.Path)); err != nil {
			return err
		}
		p.displaced = true
	}
	if err := x.v.Host.Mkdir(p.q.Path, p.q.Attrs.Mode); err != nil {
		return err
	}
	p.touched = true
	return x.v.Host.Chown(p.q.Path, p.q.Attrs.UID, p.q.Attrs.GID)
}

// rename gives a temporary file its name. What it replaces keeps another one until
// all are in place.
func (x *tree) rename(p *nameChange, keep bool) error {
	switch {
	case p.q.OverDirectory():
		if err := changedIfNotEmpty(ledger.RemoveIfThere(x.v.Host, p.q.Path)); err != nil {
			return err
		}
	case keep && p.q.Seen != nil:
		if err := x.setAside(p.q.Path, p.q.Seen); err != nil {
			return err
		}
		p.displaced = true
	}
	return host.Commit(x.v.Host, p.q.Path)
}

// setAside gives what is replaced a second name. Where no file can have two, a copy of it
// gets that, so that the name is never missing: a boot loader may read it next.
func (x *tree) setAside(name string, info *host.Info) error {
	err := x.v.Host.Link(name, ledger.DisplacedName(name))
	switch {
	case !host.NoLinks(err):
		return err
	case !info.IsRegular():
		return x.v.Host.Rename(name, ledger.DisplacedName(name))
	}
	return copyAside(x.v.Host, name, info)
}

// copyAside makes a durable copy of a file: it may have to take its place again.
func copyAside(h host.FS, name string, info *host.Info) error {
	from, err := h.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := h.Create(ledger.DisplacedName(name))
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = errors.Join(to.Chown(info.UID, info.GID), to.Chmod(ledger.PermBits(info.Mode)), to.Sync())
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	xattrs, err := ledger.KeptXattrs(h, name)
	if err != nil || len(xattrs) == 0 {
		return err
	}
	for _, attr := range slices.Sorted(maps.Keys(xattrs)) {
		if err := h.SetXattr(ledger.DisplacedName(name), attr, xattrs[attr]); err != nil {
			return err
		}
	}
	return h.SyncFile(ledger.DisplacedName(name))
}

func changedIfNotEmpty(err error) error {
	if errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// takeBack undoes changes, the last first; the last of all may not have come
// about. What was in a directory that makes way for a file does not come back: then the
// run stays owed.
func (x *tree) takeBack(done []*nameChange, late bool) (undone bool, err error) {
	for i, p := range slices.Backward(done) {
		if i == len(done)-1 && !p.displaced && !p.touched {
			continue
		}
		err = errors.Join(err, x.takeBackOne(p))
	}
	return err == nil && !late && len(x.overDirs) == 0, err
}

func (x *tree) takeBackOne(p *nameChange) error {
	q := p.q
	switch {
	case q.Type == ledger.Directory && (q.Seen == nil || q.OverFile()):
		if err := ledger.RemoveIfThere(x.v.Host, q.Path); err != nil {
			return err
		}
	case q.InPlace():
		return errors.Join(x.v.Host.Chown(q.Path, q.Seen.UID, q.Seen.GID), x.v.Host.Chmod(q.Path, ledger.PermBits(q.Seen.Mode)))
	case q.Seen != nil && q.Seen.Mode.IsDir():
		if q.Type != ledger.Gone {
			if err := ledger.RemoveIfThere(x.v.Host, q.Path); err != nil {
				return err
			}
		}
		return errors.Join(x.v.Host.Mkdir(q.Path, ledger.PermBits(q.Seen.Mode)), x.v.Host.Chown(q.Path, q.Seen.UID, q.Seen.GID))
	case q.Seen == nil && q.Type != ledger.Gone:
		return ledger.RemoveIfThere(x.v.Host, q.Path)
	}
	if !p.displaced {
		return nil
	}
	return rename(x.v.Host, ledger.DisplacedName(q.Path), q.Path)
}

// rename also where both are names of one file, for which rename(2) does nothing:
// what stands there was not replaced, and maybe can't be.
func rename(h host.FS, from, to string) error {
	a, err := ledger.Lstat(h, from)
	b, err2 := ledger.Lstat(h, to)
	switch {
	case err != nil || err2 != nil:
		return errors.Join(err, err2)
	case a != nil && b != nil && a.Inode == b.Inode && a.Device == b.Device:
		return ledger.RemoveIfThere(h, from)
	}
	return h.Rename(from, to)
}

// unchanged looks at every target once more, before the first is replaced.
func (x *tree) unchanged() error {
	for _, t := range x.v.Tasks() {
		for _, q := range t.Changes {
			if q.New() {
				continue
			}
			if err := x.unchangedOne(q); err != nil {
				return t.Failed(err)
			}
		}
	}
	return nil
}

// unchangedOne says whether a path is still what the plan was made for.
func (x *tree) unchangedOne(q *kind.Change) error {
	now, err := x.v.Lstat(q.Path)
	if err == nil && now != nil && x.v.Uncovers(q.Path) {
		return nil // it is what was below the mount
	}
	if err == nil && !ledger.Same(now, q.Seen) {
		err = ErrChanged
	}
	return err
}
