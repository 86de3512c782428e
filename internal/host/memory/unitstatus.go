package memory

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

func (h *Host) status(u *unit) host.UnitStatus {
	st := host.UnitStatus{
		Name: u.name, ID: u.name, Names: []string{u.name},
		LoadState: u.loadState(), ActiveState: u.active, SubState: u.sub,
		NeedDaemonReload: h.outdated(u.name, u.def),
		InvocationID:     u.invocation, ActiveEnter: u.entered, Result: u.result, NRestarts: u.restarts,
		MainPID: u.pid, ExecMainStart: u.started, ExecMainStatus: u.status,
		ConditionResult: u.condition, AssertResult: u.assert, ConditionTime: u.tested,
		CanStart: loadError(u) == nil,
	}
	st.TriggeredBy, st.Dependents = h.reverse(u, (*definition).triggers), h.reverse(u, (*definition).ties)
	if u.def == nil {
		return st
	}
	st.FragmentPath, st.DropInPaths, st.UnitFileState = u.def.fragment, slices.Clone(u.def.dropIns), u.def.state
	st.Triggers, st.Needs = u.def.triggers(u.name), u.def.ties(u.name)
	st.After = sorted(u.def.settings.names("After"))
	if path.Ext(u.name) == ".service" {
		st.ServiceType, st.RemainAfterExit = u.def.serviceType(), u.def.settings.bool("Service.RemainAfterExit")
		st.CanReload = len(u.def.settings["Service.ExecReload"]) > 0
	}
	return st
}

// ties are the units whose stop or restart takes this one along.
func (d *definition) ties(string) []string {
	s := d.settings
	return sorted(slices.Concat(s.names("Requires"), s.names("Requisite"), s.names("BindsTo"), s.names("PartOf"), d.requires))
}

// triggers are the units that this one starts when something happens.
func (d *definition) triggers(name string) []string {
	stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	key := map[string]string{".socket": "Socket.Service", ".timer": "Timer.Unit", ".path": "Path.Unit"}[ext]
	switch {
	case ext == ".automount":
		return []string{stem + ".mount"}
	case key == "":
		return nil
	case d.settings.last(key) != "":
		return []string{d.settings.last(key)}
	}
	return []string{stem + ".service"}
}

// reverse are the loaded units of whose list u is part.
func (h *Host) reverse(u *unit, list func(*definition, string) []string) []string {
	var out []string
	for _, name := range sortedKeys(h.systemd.units) {
		if d := h.systemd.units[name].def; d != nil && slices.Contains(list(d, name), u.name) {
			out = append(out, name)
		}
	}
	return out
}

// sorted is a list in order, each item once; nil if empty.
func sorted(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return slices.Compact(list)
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
