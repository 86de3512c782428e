package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// watcher compares what it watches with what was there before, after every
// change of the machine.
type watcher struct {
	h       *Host
	process int
	watched host.Watched
	seen    map[host.Event]string
	changed chan struct{}
	events  *host.Events
}

// Watch implements host.Watcher. It ends with the process, too.
func (h *Host) Watch(ctx context.Context, w host.Watched) (<-chan host.Event, error) {
	if err := checkWatched(ctx, w); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return nil, errOff
	}
	ctx, cancel := context.WithCancel(ctx)
	n := &watcher{
		h: h, process: h.process, watched: w,
		seen: map[host.Event]string{}, changed: make(chan struct{}, 1), events: host.NewEvents(),
	}
	n.look(func(host.Event) {})
	h.watchers[n] = true
	go n.run(ctx, cancel)
	return n.events.Deliver(ctx), nil
}

func checkWatched(ctx context.Context, w host.Watched) error {
	for _, name := range w.Names {
		if err := host.CheckPath(name); err != nil {
			return pathError("watch", name, err)
		}
	}
	for _, unit := range w.Units {
		if err := host.CheckUnit(unit); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// MissEvents makes those who watch miss changes, as a queue that is full does, or
// a systemd that executes itself anew.
func (h *Host) MissEvents() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.watchers {
		n.events.Post(host.Event{Missed: true})
	}
}

// wakeWatchers lets those who watch look as soon as the present change is done.
func (h *Host) wakeWatchers() {
	for n := range h.watchers {
		select {
		case n.changed <- struct{}{}:
		default: // it will look
		}
	}
}

func (n *watcher) run(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	for n.again() {
		select {
		case <-n.changed:
		case <-ctx.Done():
			n.h.mu.Lock()
			delete(n.h.watchers, n)
			n.h.mu.Unlock()
			return
		}
	}
}

// again looks once more, unless the process is dead.
func (n *watcher) again() bool {
	n.h.mu.Lock()
	defer n.h.mu.Unlock()
	if n.process != n.h.process {
		delete(n.h.watchers, n)
		return false
	}
	n.look(n.events.Post)
	return true
}

// look posts what differs from before.
func (n *watcher) look(post func(host.Event)) {
	for _, name := range n.watched.Names {
		n.compare(host.Event{Name: name}, n.h.nameState(name), post)
	}
	for _, unit := range n.watched.Units {
		n.compare(host.Event{Unit: unit}, n.h.unitState(unit), post)
	}
}

func (n *watcher) compare(e host.Event, state string, post func(host.Event)) {
	if n.seen[e] != state {
		n.seen[e] = state
		post(e)
	}
}

// nameState differs whenever a name, what is there or the way to it does.
func (h *Host) nameState(name string) string {
	n, err := h.find(name)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprint(&b, n.ino, n.ctime.UnixNano())
	for _, child := range sortedKeys(n.children) {
		fmt.Fprint(&b, " ", n.children[child].ino, n.children[child].ctime.UnixNano())
	}
	return b.String()
}

// unitState differs whenever a unit's state does, and after each reload. It loads
// nothing.
func (h *Host) unitState(name string) string {
	u := h.systemd.units[h.knownAs(name)]
	if u == nil {
		u = &unit{active: "inactive", sub: "dead"}
	}
	return fmt.Sprint(h.systemd.reloads, u.active, u.sub, u.entered.UnixNano(), u.tested.UnixNano())
}
