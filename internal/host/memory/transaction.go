package memory

import (
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/host"
)

// needs are the units that must run if u does.
func (u *unit) needs() []string {
	if u.def == nil {
		return nil
	}
	return slices.Concat(u.def.names("Requires"), u.def.names("BindsTo"), u.def.requires, u.def.implicit())
}

func (u *unit) wants() []string {
	if u.def == nil {
		return nil
	}
	return slices.Concat(u.def.names("Wants"), u.def.wants, u.def.sockets())
}

func (u *unit) list(key string) []string {
	if u.def == nil {
		return nil
	}
	return u.def.names(key)
}

func (u *unit) isActive() bool { return u.active == "active" || u.active == "reloading" }

// isUp says that a unit does something, were it only to end.
func (u *unit) isUp() bool { return u.active != "inactive" && u.active != "failed" }

// isStarting says that a run has begun. In auto-restart the next one has not.
func (u *unit) isStarting() bool { return u.active == "activating" && u.sub == "start" }

// closure is what a start of a unit starts: itself, and what it needs and wants
// that does not run. A needed unit that can't be loaded is an error.
func (h *Host) closure(name string, set map[string]*unit) error {
	u := h.unit(name)
	if set[u.name] != nil {
		return nil
	}
	if err := loadError(u); err != nil {
		return err
	}
	set[u.name] = u
	for _, n := range u.needs() {
		if h.unit(n).isActive() {
			continue
		}
		if err := h.closure(n, set); err != nil {
			return err
		}
	}
	for _, n := range u.wants() {
		if w := h.unit(n); !w.isActive() && loadError(w) == nil {
			if err := h.closure(n, set); err != nil {
				delete(set, w.name)
			}
		}
	}
	return nil
}

func loadError(u *unit) error {
	switch u.loadState() {
	case "loaded":
		return nil
	case "masked":
		return &host.UnitError{Unit: u.name, Err: host.ErrUnitMasked}
	case "not-found":
		return &host.UnitError{Unit: u.name, Err: host.ErrNoSuchUnit}
	}
	return &host.UnitError{Unit: u.name, Err: host.ErrBadUnit}
}

// startable is the error of a start that somebody asks for.
func (h *Host) startable(u *unit) error {
	if err := loadError(u); err != nil {
		return err
	}
	return u.refuses("Unit.RefuseManualStart")
}

// refuses is the error of a job that a unit takes from other units only.
func (u *unit) refuses(setting string) error {
	if u.def != nil && u.def.settings.bool(setting) {
		return &host.UnitError{Unit: u.name, Err: host.ErrOnlyByDependency}
	}
	return nil
}

// ordered sorts units so that each comes after those it names in After= and that
// name it in Before=; else by name. A cycle is cut at the name that comes first.
func ordered(set map[string]*unit) []*unit {
	var out []*unit
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, other := range sortedKeys(set) {
			if other != name && comesAfter(set[name], set[other]) {
				visit(other)
			}
		}
		out = append(out, set[name])
	}
	for _, name := range sortedKeys(set) {
		visit(name)
	}
	return out
}

func comesAfter(u, other *unit) bool {
	implicit := path.Ext(u.name) == ".target" && (slices.Contains(u.needs(), other.name) || slices.Contains(u.wants(), other.name))
	triggered := other.def != nil && slices.Contains(other.def.triggers, u.name)
	return implicit || triggered || slices.Contains(u.list("After"), other.name) || slices.Contains(other.list("Before"), u.name)
}

// followers are the active units that stop or restart with one.
func (h *Host) followers(u *unit, set map[string]*unit) {
	for _, other := range h.tiedTo(u) {
		f := h.systemd.units[other]
		if f.isUp() && set[other] == nil && !slices.Contains(builtin, other) {
			set[other] = f
			h.followers(f, set)
		}
	}
}
