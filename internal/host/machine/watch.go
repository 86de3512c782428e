package machine

import (
	"context"

	"github.com/berth-dev/berth/internal/host"
)

// unitWatcher is the part of a service manager that Watch needs.
type unitWatcher interface {
	watchUnits(ctx context.Context, units []string, post func(host.Event)) error
}

// watchUnits is not possible without a service manager.
func (absent) watchUnits(context.Context, []string, func(host.Event)) error {
	return host.ErrNoSystemd
}

// Watch implements host.Watcher.
func (h *Host) Watch(ctx context.Context, w host.Watched) (<-chan host.Event, error) {
	if err := checkWatched(w); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(ctx)
	q := host.NewEvents()
	if err := h.watch(own, w, q.Post); err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, cancel)
	return q.Deliver(own), nil
}

func (h *Host) watch(ctx context.Context, w host.Watched, post func(host.Event)) error {
	if len(w.Units) > 0 {
		if err := h.Systemd.(unitWatcher).watchUnits(ctx, w.Units, post); err != nil {
			return err
		}
	}
	if len(w.Names) == 0 {
		return ctx.Err()
	}
	return h.watchNames(ctx, w.Names, post)
}

func checkWatched(w host.Watched) error {
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
	return nil
}
