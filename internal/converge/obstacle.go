package converge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// obstacles blocks what can't be done: a name that nobody can replace, a directory
// of others where a file is wanted, or the other way round. An empty directory in
// place of berth's own file goes: a container runtime makes such a directory for a
// mount whose source is missing. So does a directory of berth's own of which all
// entries go.
func (p *planner) obstacles(context.Context) error {
	o := &obstacles{v: p.v, fixed: map[string]bool{}}
	for _, t := range p.v.Tasks() {
		for _, q := range t.Changes {
			why, err := o.ofName(q)
			if why == nil && err == nil {
				why, err = o.of(q)
			}
			if err != nil {
				return t.Failed(err)
			}
			if why != nil && t.Refused == nil {
				t.Obstruct(why)
			}
		}
	}
	return nil
}

// obstacles finds what stands in the way of changes.
type obstacles struct {
	v *kind.View
	// fixed are directories, and whether nobody may change their names.
	fixed map[string]bool
}

// covered says whether something is mounted over what a change takes away.
func (o *obstacles) covered(q *kind.Change) bool {
	takes := q.Temporary() || q.Type == ledger.Gone || q.OverFile()
	return takes && q.Seen != nil && q.Seen.MountPoint && !o.v.Uncovers(q.Path)
}

// longestName leaves room for what the name of a temporary file adds, in bytes: a name has
// at most 255 (NAME_MAX).
var longestName = 255 - (len(host.TempName("/x")) - len("/x"))

// ofName says why a name can't be given or taken away.
func (o *obstacles) ofName(q *kind.Change) (why, err error) {
	if q.InPlace() && !q.New() && !q.OverFile() {
		return nil, nil
	}
	immutable, err := o.immutable(path.Dir(q.Path))
	switch {
	case err != nil:
		return nil, err
	case immutable:
		return obstacle("change", q.Path, "its directory is immutable (chattr +i or +a)"), nil
	case !q.New() && len(path.Base(q.Path)) > longestName:
		return obstacle("change", q.Path, fmt.Sprintf("its name has more than %d bytes, which leaves none for a temporary file", longestName)), nil
	}
	return nil, nil
}

// immutable says whether nobody may change the names of a directory, or of the one above
// it in which it is to be made.
func (o *obstacles) immutable(dir string) (bool, error) {
	if is, known := o.fixed[dir]; known {
		return is, nil
	}
	info, err := o.v.Lstat(dir)
	if err != nil {
		return false, err
	}
	is := info != nil && info.Immutable
	if info == nil && dir != "/" {
		is, err = o.immutable(path.Dir(dir))
	}
	o.fixed[dir] = is
	return is, err
}

// of says why what a change is about can't be replaced or changed.
func (o *obstacles) of(q *kind.Change) (why, err error) {
	switch {
	case q.Seen != nil && q.Seen.Immutable:
		return obstacle("change", q.Path, "it is immutable (chattr +i or +a)"), nil
	case q.Seen != nil && hasMode(q) && kind.Exposed(q.Seen, q.Attrs) && o.v.Modeless(q.Path):
		return obstacle("chmod", q.Path, "its file system keeps no modes, and others have access that they should not have: mount it with a umask"), nil
	case o.covered(q):
		return obstacle("replace", q.Path, "something is mounted over it"), nil
	case q.OverFile() && !isOurFile(o.v.Ledger, q.Path):
		return notDirectory("make directory", q.Path, ledger.DescribeType(o.v.Host, q.Path, q.Seen)), nil
	case q.Foreign && !q.InPlace() && isSpecial(q.Seen):
		return obstacle("replace", q.Path, "it is a special file, which can't be put back"), nil
	case !q.OverDirectory():
		return nil, nil
	case q.Foreign:
		return notDirectory("replace", q.Path, "a directory"), nil
	}
	names, err := o.v.Host.ReadDir(q.Path)
	for _, n := range names {
		if !o.v.Deletes(q.Path + "/" + n) {
			return notDirectory("replace", q.Path, "a directory"), nil
		}
	}
	return nil, err
}

// hasMode says whether a change is about a mode, too.
func hasMode(q *kind.Change) bool { return q.InPlace() || q.Type == ledger.File }

// isSpecial says whether something is a pipe, a socket or a device.
func isSpecial(info *host.Info) bool {
	return info != nil && info.Mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0
}

// isOurFile says whether berth put a file or a link at a path.
func isOurFile(l *ledger.Ledger, name string) bool {
	t := l.Entries[name].Applied.Type
	return l.Made(name) && (t == ledger.File || t == ledger.Link)
}

func obstacle(op, name, why string) error {
	return &fs.PathError{Op: op, Path: name, Err: errors.New(why)}
}

func notDirectory(op, name, what string) error {
	return &fs.PathError{Op: op, Path: name, Err: kind.NotDirectoryError(what)}
}
