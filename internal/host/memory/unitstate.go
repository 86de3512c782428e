package memory

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/unitname"
)

// manager is systemd's memory.
type manager struct {
	units      map[string]*unit
	behaviours map[string]Behaviour
	reads      map[string][]string
	runs       int
	reloads    int
	log        []Job
	// dropInDirs are those that were there when a definition was last looked for.
	dropInDirs map[string]bool
	// aliases are the other names of loaded units.
	aliases map[string]string
	// told is what the process that uses the host was told of units that the manager
	// may have forgotten.
	told   map[string]told
	tree   []unitDir // as found at treeAt
	treeAt time.Time
}

func newManager() manager {
	return manager{
		units: map[string]*unit{}, aliases: map[string]string{}, told: map[string]told{},
		behaviours: map[string]Behaviour{}, reads: map[string][]string{},
	}
}

// forget is what a boot does to the manager; log and behaviours are the test's.
func (m *manager) forget() {
	m.units, m.aliases = map[string]*unit{}, map[string]string{}
	m.tree, m.treeAt = nil, time.Time{}
}

// unit is a unit the manager has loaded.
type unit struct {
	name       string
	def        *definition // nil: not found
	active     string
	sub        string
	result     string
	invocation string
	entered    time.Time
	up         time.Time // entered by a clock that nobody sets
	started    time.Time
	status     int32
	pid        uint32
	restarts   uint32
	again      time.Time // when it is restarted, in auto-restart
	tested     time.Time // conditions and assertions
	condition  bool
	assert     bool
	clash      bool        // there is a definition, but the manager can't load it now
	mounted    bool        // the kernel has it mounted
	slow       bool        // activating, and active as soon as somebody waits for it
	job        bool        // a start job holds it in memory, whether or not it runs yet
	recent     []time.Time // starts that count for the start limit
}

// unit returns a unit, loading it at the first reference. As in systemd one that
// was not found is looked for again, any other stays as it was loaded until a
// daemon-reload.
func (h *Host) unit(name string) *unit {
	id := h.identify(name)
	u := h.systemd.units[id]
	if u == nil {
		u = &unit{name: id}
		u.reset()
		if slices.Contains(builtin, id) {
			u.active, u.sub, u.invocation = "active", activeSub(id), fmt.Sprintf("%032x", h.starts)
			h.entered(u)
		}
		h.systemd.units[id] = u
	}
	if u.def == nil && !u.clash && !u.mounted {
		h.seek(u)
	}
	h.followMount(u)
	return u
}

// seek looks for the definition of a unit, and loads all that it names.
func (h *Host) seek(u *unit) {
	h.learnDropInDirs()
	names := h.namesOf(u.name)
	d := h.load(u.name, names)
	if d == nil {
		return
	}
	// A unit that lost its definition while it runs does not take another, and a
	// link to a unit that is loaded is none yet.
	if u.clash = h.leadsTo(u.name) != u.name || u.isUp() && !slices.Contains(builtin, u.name); u.clash {
		return
	}
	h.take(u, d, names)
}

// take gives a unit its definition and names, and loads the units it refers to.
func (h *Host) take(u *unit, d *definition, names []string) {
	u.def, u.clash = d, false
	if d == nil {
		return
	}
	for _, name := range names[1:] {
		h.systemd.aliases[name] = u.name
	}
	for _, name := range d.refs {
		h.unit(name)
	}
}

// knownAs is the real name of a unit as far as the manager knows names.
func (h *Host) knownAs(name string) string {
	if id, ok := h.systemd.aliases[name]; ok {
		return id
	}
	return name
}

// reset is the state of a unit that was never started.
func (u *unit) reset() { *u = unit{name: u.name, active: "inactive", sub: "dead", result: "success"} }

// loadAll reads every definition anew, and those of the targets that are always
// there.
func (h *Host) loadAll() {
	h.systemd.reloads++
	h.sweep()
	h.learnDropInDirs()
	clear(h.systemd.aliases)
	for _, name := range sortedKeys(h.systemd.units) {
		if id := h.leadsTo(name); id != name {
			h.merge(name, id)
		}
	}
	for _, u := range h.systemd.units {
		u.def, u.clash = nil, false
	}
	for _, id := range sortedKeys(h.systemd.units) {
		names := h.namesOf(id)
		h.take(h.systemd.units[id], h.load(id, names), names)
	}
	for _, name := range builtin {
		h.unit(name)
	}
}

// merge makes a unit another name of a second one, which goes on with the run of
// the first if it has none.
func (h *Host) merge(name, id string) {
	u, into := h.systemd.units[name], h.systemd.units[id]
	delete(h.systemd.units, name)
	if into == nil || !into.isUp() {
		u.name = id
		h.systemd.units[id] = u
	}
}

// sweep forgets units that do nothing, have no job and that no other unit names,
// with all that they did: systemd drops them from memory. It returns those that stay.
func (h *Host) sweep() map[string]bool {
	alive := map[string]bool{}
	var keep func(id string)
	keep = func(id string) {
		if alive[id] {
			return
		}
		alive[id] = true
		if u := h.systemd.units[id]; u != nil && u.def != nil {
			for _, name := range u.def.refs {
				keep(h.knownAs(name))
			}
		}
	}
	for id, u := range h.systemd.units {
		if u.active != "inactive" || u.job {
			keep(id)
		}
	}
	for id, u := range h.systemd.units {
		if !alive[id] {
			u.reset()
			h.disown(id)
		}
	}
	return alive
}

// disown forgets the other names of a unit.
func (h *Host) disown(id string) {
	for name, of := range h.systemd.aliases {
		if of == id {
			delete(h.systemd.aliases, name)
		}
	}
}

func (u *unit) loadState() string {
	switch {
	case u.clash:
		return "error"
	case u.def == nil && u.mounted:
		return "loaded" // systemd knows it from the table of mounts
	case u.def == nil:
		return "not-found"
	case u.def.masked:
		return "masked"
	case u.broken():
		return "bad-setting"
	}
	return "loaded"
}

// needed are the settings of which a unit of a type must have one.
var needed = map[string][]string{
	".socket": {"Socket.ListenStream", "Socket.ListenDatagram", "Socket.ListenSequentialPacket", "Socket.ListenFIFO", "Socket.ListenNetlink", "Socket.ListenSpecial"},
	".timer":  {"Timer.OnCalendar", "Timer.OnActiveSec", "Timer.OnBootSec", "Timer.OnStartupSec", "Timer.OnUnitActiveSec", "Timer.OnUnitInactiveSec", "Timer.OnClockChange", "Timer.OnTimezoneChange"},
	".path":   {"Path.PathExists", "Path.PathExistsGlob", "Path.PathChanged", "Path.PathModified", "Path.DirectoryNotEmpty"},
	".mount":  {"Mount.What"},
	".swap":   {"Swap.What"},
}

// broken says that a definition lacks what its type must have.
func (u *unit) broken() bool {
	ext := path.Ext(u.name)
	s := u.def.settings
	switch keys := needed[ext]; {
	case slices.Contains(builtin, u.name):
		return false
	case ext == ".service":
		return u.brokenService()
	case ext == ".mount" && unitname.OfPath(s.last("Mount.Where")) != strings.TrimSuffix(u.name, ext),
		ext == ".swap" && unitname.OfPath(s.last("Swap.What")) != strings.TrimSuffix(u.name, ext):
		return true
	case keys != nil:
		return !slices.ContainsFunc(keys, func(k string) bool { return len(s[k]) > 0 })
	}
	return false
}

// brokenService is a service without anything to run (systemd.service(5)).
func (u *unit) brokenService() bool {
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
