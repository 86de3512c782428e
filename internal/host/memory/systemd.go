package memory

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// errOff is the answer of a machine without power.
var errOff = syscall.EHOSTDOWN

// Unit implements host.Systemd.
func (h *Host) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := ctx.Err(); err != nil {
		return host.UnitStatus{}, err
	}
	if err := host.CheckUnit(name); err != nil {
		return host.UnitStatus{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return host.UnitStatus{}, errOff
	}
	h.sweep()
	return h.status(name), nil
}

// Loaded implements host.Systemd.
func (h *Host) Loaded(ctx context.Context, name string) (bool, error) {
	known, err := h.ListUnits(ctx)
	st, serr := h.Unit(ctx, name)
	return slices.ContainsFunc(known, func(u host.UnitStatus) bool { return u.Name == st.ID }), errors.Join(err, serr)
}

// NotFound implements host.Systemd.
func (h *Host) NotFound(ctx context.Context, names ...string) ([]string, error) {
	var out []string
	for _, name := range names {
		st, err := h.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		if st.LoadState == "not-found" && st.ActiveState == "inactive" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// State implements host.Systemd.
func (h *Host) State(ctx context.Context, name string) (host.UnitStatus, error) {
	st, err := h.Unit(ctx, name)
	return st.State(), err
}

// Invocation implements host.Systemd.
func (h *Host) Invocation(ctx context.Context, name string) (string, error) {
	st, err := h.Unit(ctx, name)
	return st.InvocationID, err
}

// ListUnits implements host.Systemd.
func (h *Host) ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return nil, errOff
	}
	var out []host.UnitStatus
	for _, name := range sortedKeys(h.sweep()) {
		if u := h.systemd.units[name]; u != nil && matchesAny(name, patterns) {
			out = append(out, host.UnitStatus{Name: name, LoadState: u.loadState(), ActiveState: u.active, SubState: h.sub(u)})
		}
	}
	return out, nil
}

// matchesAny says whether a name matches a shell pattern; all do where there is
// none.
func matchesAny(name string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// DaemonReload implements host.Systemd.
func (h *Host) DaemonReload(ctx context.Context) error {
	return h.submit(ctx, daemonReload, "", func() (string, error) {
		h.loadAll()
		return "done", nil
	})
}

// ExpectJobs implements host.Systemd. Jobs are done at once.
func (h *Host) ExpectJobs(context.Context) {}

// StartUnit implements host.Systemd.
func (h *Host) StartUnit(ctx context.Context, name string, _ ...string) error {
	return h.submit(ctx, "start", name, func() (string, error) { return h.start(name, "start") })
}

// Enqueue implements host.Systemd. The job is done at once.
func (h *Host) Enqueue(ctx context.Context, job, name string) error {
	err := cmp.Or(ctx.Err(), host.CheckUnit(name))
	if err == nil {
		_, err = h.exclusive(func() (string, error) {
			switch job {
			case "restart":
				return h.restart(name)
			case "reload":
				return h.reload(name)
			}
			return h.start(name, job)
		})
	}
	return err
}

// StopUnit implements host.Systemd.
func (h *Host) StopUnit(ctx context.Context, name string) error {
	return h.submit(ctx, "stop", name, func() (string, error) { return h.stop(name) })
}

// RestartUnit implements host.Systemd.
func (h *Host) RestartUnit(ctx context.Context, name string) error {
	return h.submit(ctx, "restart", name, func() (string, error) { return h.restart(name) })
}

// ReloadUnit implements host.Systemd.
func (h *Host) ReloadUnit(ctx context.Context, name string) error {
	return h.submit(ctx, "reload", name, func() (string, error) { return h.reload(name) })
}

// ResetFailed implements host.Systemd.
func (h *Host) ResetFailed(ctx context.Context, name string) error {
	return h.submit(ctx, "reset-failed", name, func() (string, error) {
		u := h.unit(name)
		u.recent, u.restarts, u.result = nil, 0, "success"
		if u.active == "failed" {
			u.active, u.sub = "inactive", "dead"
		}
		return "done", nil
	})
}

// Crash ends the main process of a running unit with a status. With Restart= in
// its definition the unit is started again, else it fails.
func (h *Host) Crash(name string, status int32) {
	_, _ = h.exclusive(func() (string, error) {
		u := h.unit(name)
		if !u.isActive() || u.def == nil {
			return "done", nil
		}
		h.fail(u, "exit-code", status)
		for _, f := range h.bound(u) {
			h.halt(f, "stop")
		}
		if restarts(u.def.settings) && !h.limited(u) {
			u.restarts++
			return h.execute(u, autoRestart), nil
		}
		return "done", nil
	})
}

// bound are the running units that end when a unit does, however it does, with
// their followers.
func (h *Host) bound(u *unit) []*unit {
	set := map[string]*unit{}
	for _, name := range h.naming(u, func(d *definition) []string { return d.names("BindsTo") }) {
		if f := h.systemd.units[name]; f.isUp() {
			set[name] = f
			h.followers(f, set)
		}
	}
	out := ordered(set)
	slices.Reverse(out)
	return out
}

// startBoot starts what the targets of a boot want.
func (h *Host) startBoot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	verbs := map[string]string{}
	for _, target := range builtin {
		d := h.unit(target).def
		for _, name := range slices.Concat(d.wants, d.requires) {
			verbs[h.unit(name).name] = "boot"
		}
	}
	set := map[string]*unit{}
	for _, name := range sortedKeys(verbs) {
		if u := h.unit(name); !u.isActive() {
			_ = h.closure(name, set)
		}
	}
	results := map[string]string{}
	for _, u := range ordered(set) {
		results[u.name] = h.startOne(u, "boot", results)
	}
}
