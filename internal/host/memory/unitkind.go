package memory

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// triggerable says whether what a unit starts is there, and that a socket's
// service does not run: it has no socket to be given any more.
func (h *Host) triggerable(u *unit) bool {
	ext := path.Ext(u.name)
	if ext == ".automount" || u.def == nil {
		return true
	}
	for _, name := range u.def.triggers {
		t := h.unit(name)
		if t.loadState() != "loaded" || ext == ".socket" && t.isUp() && t.sub != autoRestart {
			return false
		}
	}
	return true
}

// fileSystems are the types that a mount unit of a machine in memory can mount.
var fileSystems = []string{"", "auto", "none", "tmpfs", "ext4", "xfs", "vfat", "btrfs", "overlay", "bpf", "cgroup2", "nfs", "nfs4"}

// startMount mounts what a unit says; its directory is made where it is missing.
func (h *Host) startMount(u *unit, at int) string {
	s := u.def.settings
	m := host.Mount{Source: s.last("Mount.What"), Target: s.last("Mount.Where"), Type: s.last("Mount.Type")}
	if o := s.last("Mount.Options"); o != "" {
		m.Options = strings.Split(o, ",")
	}
	out := Outcome{}
	if b := h.systemd.behaviours[u.name]; b != nil {
		out = h.behave(b, Start{Unit: u.name, Verb: h.systemd.log[at].Verb})
	}
	if !slices.Contains(fileSystems, m.Type) {
		out.Status = 32 // mount(8): mount failure
	}
	if out.Status != 0 || out.Result != "" {
		return h.failed(u, out, at)
	}
	if p, err := h.locate(m.Target); err == nil && p.node != nil {
		h.mount(m, p)
	} else {
		h.dirs(m.Target)
		p, _ := h.locate(m.Target)
		h.mount(m, p)
	}
	h.enter(u, "mounted")
	return "done"
}

// mountOf finds what is mounted for a unit; -1 is nothing.
func (h *Host) mountOf(u *unit) int {
	stem, ok := strings.CutSuffix(u.name, ".mount")
	if !ok {
		return -1
	}
	return slices.IndexFunc(h.mounts, func(m *mount) bool { return unitname.OfPath(m.Target) == stem })
}

func (h *Host) unmountUnit(u *unit) {
	if i := h.mountOf(u); i >= 0 {
		h.unmount(i)
		u.mounted = false
	}
}

// followMount makes a mount unit what the kernel's table says, whoever mounted.
func (h *Host) followMount(u *unit) {
	if path.Ext(u.name) != ".mount" || slices.Contains(builtin, u.name) {
		return
	}
	u.mounted = h.mountOf(u) >= 0
	switch {
	case u.mounted && !u.isUp():
		h.enter(u, "mounted")
	case !u.mounted && u.isActive():
		u.active, u.sub = "inactive", "dead"
	}
}
