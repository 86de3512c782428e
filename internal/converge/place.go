package converge

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

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

// place gives everything its name and makes the names durable, each directory
// once, and what was changed in place.
func (a *applying) place(late bool) error {
	dirs := map[string]bool{}
	var files []string
	for _, t := range a.sorted() {
		for _, q := range t.puts {
			if q.late != late || (q.kind == putDir && q.seen == nil) {
				continue
			}
			if err := placeUnchanged(a.h, q); err != nil {
				return &ActionError{ID: t.id, Verb: t.verb(), Field: t.base.Field, Err: err}
			}
			q.noteDirs(dirs)
			if q.kind == putAttributes {
				files = append(files, q.path)
			}
		}
	}
	return errors.Join(a.syncDirs(dirs), a.syncEach(files, a.h.SyncFile))
}

// noteDirs marks the directories whose names a put has changed.
func (q *put) noteDirs(dirs map[string]bool) {
	dirs[path.Dir(q.path)] = true
	switch q.kind {
	case putDelete:
		delete(dirs, q.path)
	case putDir:
		dirs[q.path] = true
	}
}

func (a *applying) syncDirs(dirs map[string]bool) error {
	names := make([]string, 0, len(dirs))
	for d := range dirs {
		names = append(names, d)
	}
	slices.Sort(names)
	return a.syncEach(names, a.h.SyncDir)
}

func (a *applying) syncEach(names []string, sync func(string) error) error {
	g := errgroup.Group{}
	g.SetLimit(a.opt.Workers)
	for _, name := range names {
		g.Go(func() error { return Safely(func() error { return sync(name) }) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make names durable: %w", err)
	}
	return nil
}

// placeUnchanged looks once more, right before it acts.
func placeUnchanged(h host.FS, q *put) error {
	if err := q.unchanged(h); err != nil {
		return err
	}
	return placeOne(h, q)
}

func placeOne(h host.FS, q *put) error {
	switch q.kind {
	case putDelete:
		err := removeIfThere(h, q.path)
		if errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		return err
	case putDir, putAttributes:
		return errors.Join(h.Chown(q.path, q.attrs.UID, q.attrs.GID), h.Chmod(q.path, q.mode()))
	}
	return q.rename(h)
}

// unchanged looks at every target once more, before the first is replaced.
func (a *applying) unchanged() error {
	for _, t := range a.tasks {
		for _, q := range t.puts {
			if q.kind == putDir && q.seen == nil {
				continue
			}
			if err := q.unchanged(a.h); err != nil {
				return &ActionError{ID: t.id, Verb: t.verb(), Field: t.base.Field, Err: err}
			}
		}
	}
	return nil
}

// unchanged says whether a path is still what the plan was made for.
func (p *put) unchanged(h host.FS) error {
	now, err := lstat(h, p.path)
	if err == nil && !same(now, p.seen) {
		err = ErrChanged
	}
	return err
}
