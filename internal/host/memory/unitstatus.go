package memory

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// status describes a unit to somebody who asked for it by a name.
func (h *Host) status(asked string) host.UnitStatus {
	u := h.unit(asked)
	st := host.UnitStatus{
		Name: asked, ID: u.name, Names: []string{u.name},
		LoadState: u.loadState(), ActiveState: u.active, SubState: h.sub(u),
		NeedDaemonReload: h.outdated(u.def, h.known(u)),
		InvocationID:     u.invocation, ActiveEnter: u.entered, Result: u.resultNow(), NRestarts: u.restarts,
		MainPID: u.pid, ExecMainStart: u.started, ExecMainStatus: u.status,
		ConditionResult: u.condition, AssertResult: u.assert, ConditionTime: u.tested,
		ActiveFor: h.activeFor(u), CanStart: h.startable(u) == nil,
		CanReload: path.Ext(u.name) == ".mount",
	}
	if t, ok := h.systemd.told[u.name]; ok && u.tested.IsZero() {
		st.ConditionResult, st.AssertResult, st.ConditionTime = t.condition, t.assert, t.at
	}
	st.TriggeredBy, st.Dependents = h.triggeredBy(u), h.tiedTo(u)
	if u.def == nil {
		return st
	}
	st.Names = sorted(h.known(u))
	st.FragmentPath, st.DropInPaths, st.UnitFileState = u.def.fragment, slices.Clone(u.def.dropIns), h.fileState(u.def)
	st.Triggers, st.Needs = slices.Clone(u.def.triggers), slices.Clone(u.def.ties)
	st.Requires = sorted(append(u.needs(), u.def.names("Requisite")...))
	st.After = sorted(append(u.def.settings.names("After"), st.TriggeredBy...))
	if path.Ext(u.name) == ".service" && !u.def.masked {
		st.ServiceType, st.RemainAfterExit = u.def.serviceType(), u.def.settings.bool("Service.RemainAfterExit")
		st.CanReload = len(u.def.settings["Service.ExecReload"]) > 0
	}
	return st
}

// entered notes that a unit is active from now on.
func (h *Host) entered(u *unit) { u.entered, u.up = h.now, h.now.Add(-h.stepped) }

func (h *Host) activeFor(u *unit) time.Duration {
	if u.active != "active" {
		return 0
	}
	return h.now.Add(-h.stepped).Sub(u.up)
}

// known are the names of a unit that the manager knows, the real one first.
func (h *Host) known(u *unit) []string {
	out := []string{u.name}
	for _, name := range sortedKeys(h.systemd.aliases) {
		if h.systemd.aliases[name] == u.name {
			out = append(out, name)
		}
	}
	return out
}

// resultNow is the property Result, which not every type of unit has.
func (u *unit) resultNow() string {
	switch path.Ext(u.name) {
	case ".target", ".slice", ".device":
		return ""
	}
	return u.result
}

// sub is the sub-state. What waits for something is "running" while that runs
// which it starts.
func (h *Host) sub(u *unit) string {
	if u.active == "active" && u.def != nil && path.Ext(u.name) != ".automount" {
		for _, name := range u.def.triggers {
			t := h.systemd.units[h.knownAs(name)]
			if t != nil && (t.sub == "running" || t.isUp() && path.Ext(u.name) != ".socket") {
				return "running"
			}
		}
	}
	return u.sub
}

// triggeredBy are the loaded units that start a unit.
func (h *Host) triggeredBy(u *unit) []string {
	var out []string
	if u.def != nil {
		out = u.def.sockets()
	}
	return sorted(append(out, h.naming(u, func(d *definition) []string { return d.triggers })...))
}

// tiedTo are the loaded units that stop with a unit.
func (h *Host) tiedTo(u *unit) []string {
	return sorted(h.naming(u, func(d *definition) []string { return d.ties }))
}

// naming are the loaded units that name a unit in a list.
func (h *Host) naming(u *unit, list func(*definition) []string) []string {
	names := h.known(u)
	var out []string
	for other, o := range h.systemd.units {
		if o.def != nil && slices.ContainsFunc(list(o.def), func(n string) bool { return slices.Contains(names, n) }) {
			out = append(out, other)
		}
	}
	return out
}

// serviceType is Type=, or what it is where nothing is said (systemd.service(5)).
func (d *definition) serviceType() string {
	s := d.settings
	switch t := s.last("Service.Type"); {
	case t != "":
		return t
	case s.last("Service.BusName") != "":
		return "dbus"
	case len(s["Service.ExecStart"]) == 0:
		return "oneshot"
	}
	return "simple"
}

// fileState says whether a unit starts at boot. systemd looks when it is first
// asked after it has loaded the unit.
func (h *Host) fileState(d *definition) string {
	if d.state == nil {
		s := h.findFileState(d)
		d.state = &s
	}
	return *d.state
}

func (h *Host) findFileState(d *definition) string {
	fragment, masked := h.fragment(d.id)
	switch {
	case d.fragment == "":
		return ""
	case fragment == "":
		return "bad"
	case masked && strings.HasPrefix(fragment, "/run/"):
		return "masked-runtime"
	case masked:
		return "masked"
	case h.hasLink(unitDirs[0], d):
		return "enabled"
	case h.hasLink(unitDirs[1], d):
		return "enabled-runtime"
	case h.linkedFrom(fragment):
		return "linked"
	case len(h.namesOf(d.id)) > 1:
		return "indirect"
	case d.settings.hasSection("Install"):
		return "disabled"
	}
	return "static"
}

// linkedFrom says whether a definition is a link to a file elsewhere.
func (h *Host) linkedFrom(fragment string) bool {
	n, err := h.find(fragment)
	return err == nil && n.isLink() && !slices.Contains(unitDirs, path.Dir(host.Splice(path.Dir(fragment), n.target, "")))
}

// hasLink says whether a directory of definitions enables a unit.
func (h *Host) hasLink(dir string, d *definition) bool {
	n, err := h.follow(dir, false)
	if err != nil {
		return false
	}
	for sub, in := range n.children {
		isLinkDir := slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(sub))
		if isLinkDir && in.children[d.id] != nil {
			return true
		}
	}
	for _, alias := range d.settings["Install.Alias"] {
		for _, name := range strings.Fields(expand(alias, d.id)) {
			if l := n.children[name]; l != nil && l.isLink() && h.leadsTo(name) == d.id {
				return true
			}
		}
	}
	return false
}
