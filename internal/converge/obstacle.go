package converge

import (
	"io/fs"

	"github.com/berth-dev/berth/internal/host"
)

// obstacles refuses what a rename can't replace: a directory where a file or a
// link is wanted. One that is empty and stands in place of berth's own file goes:
// a container runtime makes such a directory for a mount whose source is missing.
func (p *planning) obstacles() error {
	for _, t := range p.tasks {
		for _, q := range t.puts {
			if err := p.obstacle(q); err != nil {
				return &ActionError{ID: t.id, Verb: t.verb(), Field: t.base.Field, Err: err}
			}
		}
	}
	return nil
}

func (p *planning) obstacle(q *put) error {
	if !q.overDirectory() {
		return nil
	}
	names, err := p.h.ReadDir(q.path)
	if err == nil && (q.foreign || len(names) > 0) {
		err = &fs.PathError{Op: "replace", Path: q.path, Err: errNotDirectory("a directory")}
	}
	return err
}

func (p *put) overDirectory() bool {
	return p.temporary() && p.seen != nil && p.seen.Mode.IsDir()
}

// rename gives a temporary file its name.
func (p *put) rename(h host.FS) error {
	if p.overDirectory() {
		if err := removeIfThere(h, p.path); err != nil {
			return err
		}
	}
	return host.Commit(h, p.path)
}
