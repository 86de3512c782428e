package provision

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// DirWatch watches directories through the kernel. Changes that follow each
// other closely may be told once; an overflow of the kernel's queue is told as
// a change.
func DirWatch(dirs ...string) (Watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	for _, d := range dirs {
		if err := n.Add(d); err != nil {
			return nil, fmt.Errorf("watch %s: %w", d, joinClose(err, n))
		}
	}
	w := &dirWatch{notify: n, changed: make(chan struct{}, 1)}
	go w.forward()
	return w, nil
}

type dirWatch struct {
	notify  *fsnotify.Watcher
	changed chan struct{}
}

// Changed implements Watcher.
func (w *dirWatch) Changed() <-chan struct{} { return w.changed }

// Close implements Watcher.
func (w *dirWatch) Close() error { return w.notify.Close() }

func (w *dirWatch) forward() {
	for {
		select {
		case _, ok := <-w.notify.Events:
			if !ok {
				return
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
		}
		select {
		case w.changed <- struct{}{}:
		default: // a change is waiting to be seen already
		}
	}
}

func joinClose(err error, c interface{ Close() error }) error {
	if cerr := c.Close(); cerr != nil {
		return fmt.Errorf("%w (and close: %w)", err, cerr)
	}
	return err
}
