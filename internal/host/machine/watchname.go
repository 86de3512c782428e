package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// nameWatch watches names by the directories that hold them, and by all that lead
// there: what is replaced on the way is noticed by its own parent.
type nameWatch struct {
	tree   tree
	names  []string
	notify *fsnotify.Watcher
	post   func(host.Event)
	// again is when what could not be watched is tried again; nil is never.
	again <-chan time.Time
	way
}

// armAgain is how long what can't be watched any more goes without a look at it.
const armAgain = time.Minute

// way is how to get to the names as the tree is now, with the paths that the
// kernel has for it.
type way struct {
	dirs map[string]bool // to be watched
	// entries are what leads to names, or is one; leads says which lead further.
	entries map[string][]string
	leads   map[string]bool
	// within are names that are directories.
	within map[string][]string
}

// watchNames posts an event for each change until ctx ends.
func (t tree) watchNames(ctx context.Context, names []string, post func(host.Event)) error {
	w, err := t.newNameWatch(names, post)
	if err != nil {
		return err
	}
	go w.run(ctx)
	return nil
}

func (t tree) newNameWatch(names []string, post func(host.Event)) (*nameWatch, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &nameWatch{tree: t, names: names, notify: notify, post: post}
	if err := w.arm(); err != nil {
		return nil, errors.Join(err, notify.Close())
	}
	return w, nil
}

func (w *nameWatch) run(ctx context.Context) {
	defer func() { _ = w.notify.Close() }() // it only watched
	for {
		select {
		case e := <-w.notify.Events:
			w.event(e)
		case err := <-w.notify.Errors:
			if err != nil { // above all, that the kernel's queue was full
				w.anew("/")
				w.post(host.Event{Missed: true})
			}
		case <-w.again:
			w.again = nil
			w.rearm()
			w.post(host.Event{Missed: true})
		case <-ctx.Done():
			return
		}
	}
}

// event is a change of a directory's entry.
func (w *nameWatch) event(e fsnotify.Event) {
	e.Name = path.Clean(e.Name) // of what is directly below / fsnotify says //name
	const moves = fsnotify.Create | fsnotify.Remove | fsnotify.Rename
	moved := e.Op&moves != 0
	names := slices.Concat(w.entries[e.Name], w.within[e.Name], w.within[path.Dir(e.Name)])
	if w.leads[e.Name] && !moved {
		return // attributes of a directory on the way
	}
	if moved && w.rearranges(e.Name) {
		w.anew(e.Name)
	}
	for _, name := range names {
		w.post(host.Event{Name: name})
	}
}

// rearranges says whether other directories have to be watched after an entry came or
// went: it is, or was, a directory, or a link that leads further. To look for the way to
// all names whenever one file is replaced would take ever longer with their number.
func (w *nameWatch) rearranges(entry string) bool {
	if w.leads[entry] || w.dirs[entry] {
		return true
	}
	return slices.ContainsFunc(w.entries[entry], func(name string) bool {
		info, err := w.tree.Lstat(name)
		return err == nil && info.Mode.IsDir()
	})
}

// anew watches again what is at a path or below it: it may be something else now.
func (w *nameWatch) anew(p string) {
	for dir := range w.dirs {
		if dir == p || strings.HasPrefix(dir, strings.TrimSuffix(p, "/")+"/") {
			_ = w.notify.Remove(dir) // it may have gone by itself
			delete(w.dirs, dir)
		}
	}
	w.rearm()
}

// rearm watches what is not watched yet. What can't be is tried again later: nothing may tell
// that others have given watches back. What is watched stays so, and goes to nobody else.
func (w *nameWatch) rearm() {
	if w.arm() == nil {
		return
	}
	w.post(host.Event{Missed: true})
	if w.again == nil {
		w.again = time.After(armAgain)
	}
}

// arm watches every directory that there is on the way, from the top. What comes
// while it does so is found by looking again.
func (w *nameWatch) arm() error {
	for {
		next, err := w.tree.wayTo(w.names)
		if err != nil {
			return err
		}
		added := false
		for _, dir := range slices.Sorted(maps.Keys(next.dirs)) {
			if w.dirs[dir] {
				continue
			}
			switch err := w.notify.Add(dir); {
			case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
				delete(next.dirs, dir)
			case err != nil:
				return fmt.Errorf("watch %s: %w", dir, err)
			}
			added = true
		}
		w.release(next)
		w.way = next
		if !added {
			return nil
		}
	}
}

// release gives up directories that lead nowhere any more.
func (w *nameWatch) release(next way) {
	for dir := range w.dirs {
		if !next.dirs[dir] {
			_ = w.notify.Remove(dir) // it may have gone by itself
		}
	}
}

// wayTo finds the way to names, as far as there is one.
func (t tree) wayTo(names []string) (way, error) {
	out := way{map[string]bool{}, map[string][]string{}, map[string]bool{}, map[string][]string{}}
	top, err := realPath(t.root)
	if err != nil {
		return out, pathError("watch", "/", err)
	}
	for _, name := range names {
		if err := t.follow(&out, top, name); err != nil {
			return out, pathError("watch", name, err)
		}
	}
	return out, nil
}

// follow adds the way to one name.
func (t tree) follow(out *way, top, name string) error {
	rest := strings.TrimPrefix(name, "/")
	for at := 0; ; {
		step, _, more := strings.Cut(rest[at:], "/")
		dir, err := t.real(path.Join("/", rest[:at]))
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			return nil
		case err != nil:
			return err
		}
		out.lead(top, dir, name)
		entry := path.Join(dir, step)
		out.entries[entry] = add(out.entries[entry], name)
		if !more {
			break
		}
		out.leads[entry] = true
		at += len(step) + 1
	}
	if info, err := t.Lstat(name); err == nil && info.Mode.IsDir() {
		dir, err := t.real(name)
		if err == nil {
			out.dirs[dir] = true
			out.within[dir] = add(out.within[dir], name)
		}
	}
	return nil
}

// lead adds a directory and those above it.
func (out *way) lead(top, dir, name string) {
	out.dirs[dir] = true
	for ; dir != top && dir != "/"; dir = path.Dir(dir) {
		out.dirs[path.Dir(dir)] = true
		out.entries[dir] = add(out.entries[dir], name)
		out.leads[dir] = true
	}
}

func add(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// real is the kernel's own path of a directory.
func (t tree) real(dir string) (string, error) {
	fd, err := t.parent(dir)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return realPath(fd)
}

func realPath(fd int) (string, error) {
	return readlinkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd))
}
