package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/host"
)

// lastReconnectPause is the longest time between two tries to reach a systemd
// that has gone.
const lastReconnectPause = time.Second

// questions is how many units systemd is asked for at once.
const questions = 16

// unitWatch watches units by the signals that systemd sends.
type unitWatch struct {
	m     *manager
	units []string
	post  func(host.Event)
	// renamed says that aliases may lead elsewhere now.
	renamed chan struct{}
	// paths are the objects of the units, by name and by real name, and seen is the
	// state that was last told of each; both under the lock of the news.
	paths map[dbus.ObjectPath][]string
	seen  map[dbus.ObjectPath]string
}

// watchUnits posts an event for each change until ctx ends.
func (m *manager) watchUnits(ctx context.Context, units []string, post func(host.Event)) error {
	w := &unitWatch{
		m: m, units: units, post: post, renamed: make(chan struct{}, 1),
		paths: map[dbus.ObjectPath][]string{}, seen: map[dbus.ObjectPath]string{},
	}
	m.news.add(w)
	c, err := w.subscribe(ctx)
	if err != nil {
		m.news.remove(w)
		return err
	}
	go w.run(ctx, c)
	return nil
}

func (w *unitWatch) run(ctx context.Context, c *connection) {
	defer w.m.news.remove(w)
	for {
		select {
		case <-w.renamed:
			_, _ = w.subscribe(ctx) // a connection that is lost is noticed below
		case <-c.raw.Context().Done():
			w.post(host.Event{Missed: true})
			if c = w.again(ctx); c == nil {
				return
			}
			w.post(host.Event{Missed: true})
		case <-ctx.Done():
			return
		}
	}
}

// again subscribes anew after a loss; nil when ctx has ended.
func (w *unitWatch) again(ctx context.Context) *connection {
	for pause := reconnectPause; ; pause = min(2*pause, lastReconnectPause) {
		if c, err := w.subscribe(ctx); err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// subscribe makes systemd tell of the units, whatever they are called.
func (w *unitWatch) subscribe(ctx context.Context) (*connection, error) {
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	c, err := w.m.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch units: %w", err)
	}
	if !c.private { // to a connection of its own systemd tells everything
		if err := c.Subscribe(); err != nil {
			return nil, fmt.Errorf("watch units: %w", err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(questions)
	for _, unit := range w.units {
		w.attend(unit) // what changes after the answer may be told before it is noted
		g.Go(func() error {
			p, err := c.all(ctx, unit, unitIface)
			if err == nil {
				w.watch(unit, p)
			}
			return refused(unit, err)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return c, nil
}

// attend notes under which object a unit is told, if it has no other name.
func (w *unitWatch) attend(unit string) {
	w.m.news.mu.Lock()
	defer w.m.news.mu.Unlock()
	path := objectOf(unit)
	w.paths[path] = add(w.paths[path], unit)
}

// watch notes under which objects a unit is told, and its present state.
func (w *unitWatch) watch(unit string, p props) {
	w.m.news.mu.Lock()
	defer w.m.news.mu.Unlock()
	for _, name := range []string{unit, get[string](p, "Id")} {
		path := objectOf(name)
		w.paths[path] = add(w.paths[path], unit)
		w.seen[path] = stateOf(p)
	}
}

// stateProps are the properties whose change is a change of a unit. Others change
// with them, or whenever somebody looks.
var stateProps = []string{"ActiveState", "SubState", "StateChangeTimestamp", "ConditionTimestamp"}

// changed posts a change of a unit's properties, if it is one: systemd tells of a
// unit that does nothing whenever somebody has asked for it.
func (w *unitWatch) changed(path dbus.ObjectPath, p props) {
	state := stateOf(p)
	if len(w.paths[path]) == 0 || w.seen[path] == state {
		return
	}
	w.seen[path] = state
	for _, unit := range w.paths[path] {
		w.post(host.Event{Unit: unit})
	}
}

func stateOf(p props) string {
	state := ""
	for _, name := range stateProps {
		state += fmt.Sprint(p[name].Value(), " ")
	}
	return state
}

// reloaded posts that systemd has read all definitions anew.
func (w *unitWatch) reloaded() {
	for _, unit := range w.units {
		w.post(host.Event{Unit: unit})
	}
	select {
	case w.renamed <- struct{}{}:
	default: // it will be looked at
	}
}
