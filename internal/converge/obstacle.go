package converge

import (
	"context"
	"errors"
	"io/fs"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// obstacles blocks what can't be done: a name that nobody can replace, a directory
// of others where a file is wanted, or the other way round. An empty directory in
// place of berth's own file goes: a container runtime makes such a directory for a
// mount whose source is missing. So does a directory of berth's own of which all
// entries go.
func (p *planner) obstacles(ctx context.Context) error {
	mounted, err := p.mounted(ctx)
	if err != nil {
		return err
	}
	for _, t := range p.v.Tasks() {
		for _, q := range t.Changes {
			why, err := p.obstacle(q, mounted)
			if err != nil {
				return &ActionError{ID: t.ID, Verb: t.Verb(), Field: t.Base.Field, Err: err}
			}
			if why != nil && t.Refused == nil {
				t.Obstruct(why)
			}
		}
	}
	return nil
}

// mounted are the targets of mounts.
func (p *planner) mounted(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	mounts, err := p.h.Mounts(ctx)
	if errors.Is(err, host.ErrOtherRoot) {
		return out, nil
	}
	for _, m := range mounts {
		out[m.Target] = true
	}
	return out, err
}

func (p *planner) obstacle(q *kind.Change, mounted map[string]bool) (why, err error) {
	replaced := q.Seen != nil && (q.Temporary() || q.Type == ledger.Gone || q.OverFile())
	switch {
	case q.Seen != nil && q.Seen.Immutable:
		return obstacle("change", q.Path, "it is immutable (chattr +i or +a)"), nil
	case replaced && mounted[q.Path] && !p.v.Uncovers(q.Path):
		return obstacle("replace", q.Path, "something is mounted over it"), nil
	case q.OverFile() && !p.isOurFile(q.Path):
		return notDirectory("make directory", q.Path, ledger.DescribeType(p.h, q.Path, q.Seen)), nil
	case !q.OverDirectory():
		return nil, nil
	case q.Foreign:
		return notDirectory("replace", q.Path, "a directory"), nil
	}
	names, err := p.h.ReadDir(q.Path)
	for _, n := range names {
		if !p.v.Deletes(q.Path + "/" + n) {
			return notDirectory("replace", q.Path, "a directory"), nil
		}
	}
	return nil, err
}

// isOurFile says whether berth put a file or a link at a path.
func (p *planner) isOurFile(path string) bool {
	t := p.led.Entries[path].Put.Type
	return p.led.Made(path) && (t == ledger.File || t == ledger.Link)
}

func obstacle(op, path, why string) error {
	return &fs.PathError{Op: op, Path: path, Err: errors.New(why)}
}

func notDirectory(op, path, what string) error {
	return &fs.PathError{Op: op, Path: path, Err: kind.NotDirectoryError(what)}
}
