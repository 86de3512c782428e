package memory

import (
	"path"
	"slices"
	"strings"
	"time"
)

// manager is systemd's memory.
type manager struct {
	units      map[string]*unit
	behaviours map[string]Behaviour
	reads      map[string][]string
	runs       int
	log        []Job
	// dropInDirs are those that were there at the last reload.
	dropInDirs map[string]bool
}

func newManager() manager {
	return manager{units: map[string]*unit{}, behaviours: map[string]Behaviour{}, reads: map[string][]string{}}
}

// forget is what a boot does to the manager; log and behaviours are the test's.
func (m *manager) forget() { m.units = map[string]*unit{} }

// unit is a unit the manager has loaded.
type unit struct {
	name       string
	def        *definition // nil: not found
	active     string
	sub        string
	result     string
	invocation string
	entered    time.Time
	started    time.Time
	status     int32
	pid        uint32
	restarts   uint32
	tested     time.Time // conditions and assertions
	condition  bool
	assert     bool
	slow       bool        // activating, and active as soon as somebody waits for it
	recent     []time.Time // starts that count for the start limit
}

// unit returns a unit, loading it at the first reference. As in systemd one that
// was not found is looked for again, any other stays as it was loaded until a
// daemon-reload.
func (h *Host) unit(name string) *unit {
	u := h.systemd.units[name]
	if u == nil {
		u = &unit{name: name, active: "inactive", sub: "dead", result: "success"}
		if slices.Contains(builtin, name) {
			u.active, u.sub, u.entered = "active", activeSub(name), h.now
		}
		h.systemd.units[name] = u
	}
	if u.def == nil {
		u.def = h.load(name)
	}
	return u
}

// loadAll reads every definition anew, and those of the targets that are always
// there.
func (h *Host) loadAll() {
	for _, u := range h.systemd.units {
		u.def = nil
	}
	for _, name := range slices.Concat(builtin, sortedKeys(h.systemd.units)) {
		h.unit(name)
	}
	h.systemd.dropInDirs = map[string]bool{}
	for _, dir := range h.unitTree() {
		for sub := range dir.node.children {
			if strings.HasSuffix(sub, ".d") {
				h.systemd.dropInDirs[path.Join(dir.path, sub)] = true
			}
		}
	}
}

// sweep forgets the last run of units that do nothing and that no other unit
// names: systemd drops them from memory. What it had read of them stays here
// until the next reload, since it may drop them late.
func (h *Host) sweep() {
	for name, u := range h.systemd.units {
		if u.active == "inactive" && u.invocation != "" && !h.referenced(name) {
			*u = unit{name: name, def: u.def, active: "inactive", sub: "dead", result: "success"}
		}
	}
}

// references are the settings by which a unit names others.
var references = []string{"Requires", "BindsTo", "PartOf", "Wants", "After", "Before"}

func (h *Host) referenced(name string) bool {
	for other, u := range h.systemd.units {
		if other == name || u.def == nil {
			continue
		}
		if slices.Contains(u.def.wants, name) || slices.Contains(u.def.requires, name) {
			return true
		}
		for _, key := range references {
			if slices.Contains(u.list(key), name) {
				return true
			}
		}
	}
	return false
}

func (u *unit) loadState() string {
	switch {
	case u.def == nil:
		return "not-found"
	case u.def.masked:
		return "masked"
	case u.broken():
		return "bad-setting"
	}
	return "loaded"
}

// broken is a service without anything to run (systemd.service(5)).
func (u *unit) broken() bool {
	if path.Ext(u.name) != ".service" || slices.Contains(builtin, u.name) {
		return false
	}
	s := u.def.settings
	oneshotWithout := s.last("Service.Type") == "oneshot" && len(s["Service.ExecStop"]) > 0
	if len(s["Service.ExecStart"]) == 0 && !oneshotWithout && !s.bool("Service.RemainAfterExit") {
		return true
	}
	for _, e := range s.exec("ExecStart") {
		if !path.IsAbs(e.path) && strings.Contains(e.path, "/") {
			return true
		}
	}
	return len(s["Service.ExecStart"]) > 1 && s.last("Service.Type") != "oneshot"
}

// fileState says whether a unit starts at boot. systemd asks when it loads a
// unit, not when somebody asks it.
func (h *Host) fileState(name string) string {
	fragment, masked := h.fragment(name)
	switch {
	case fragment == "":
		return ""
	case masked && strings.HasPrefix(fragment, "/run/"):
		return "masked-runtime"
	case masked:
		return "masked"
	case h.hasLink(unitDirs[0], name):
		return "enabled"
	case h.hasLink(unitDirs[1], name):
		return "enabled-runtime"
	}
	s := settings{}
	if n, err := h.follow(fragment, false); err == nil {
		s.merge(string(n.content))
	}
	if s.hasSection("Install") {
		return "disabled"
	}
	return "static"
}

// hasLink says whether a directory of definitions enables a unit.
func (h *Host) hasLink(dir, name string) bool {
	n, err := h.follow(dir, false)
	if err != nil {
		return false
	}
	for sub, d := range n.children {
		isLinkDir := strings.HasSuffix(sub, ".wants") || strings.HasSuffix(sub, ".requires")
		if isLinkDir && d.children[name] != nil {
			return true
		}
	}
	return false
}

// activeSub is the sub-state of an active unit that runs no process of its own.
func activeSub(name string) string {
	switch path.Ext(name) {
	case ".socket":
		return "listening"
	case ".mount":
		return "mounted"
	case ".timer", ".path":
		return "waiting"
	case ".service":
		return "running"
	case ".device", ".scope":
		return "plugged"
	}
	return "active"
}
