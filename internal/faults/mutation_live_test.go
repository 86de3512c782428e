package faults_test

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

func ofUnit(h *memory.Host, u *desired.Unit) []mutation {
	name, id := u.Name, string(u.ID())
	wants := "/etc/systemd/system/multi-user.target.wants/" + name
	if path.Ext(name) == ".timer" {
		wants = "/etc/systemd/system/timers.target.wants/" + name
	}
	dropIn := "/etc/systemd/system/" + name + ".d/99-foreign.conf"
	added := dropIn
	if _, err := h.Lstat(path.Dir(dropIn)); err != nil {
		added = path.Dir(dropIn) // the directory is the foreigner's, too
	}
	stop := func(h *memory.Host) { check(h.StopUnit(tctx, name)) }
	disable := func(h *memory.Host) { check(h.Remove(wants)); check(h.DaemonReload(tctx)) }
	started := []string{"start " + name}
	out := []mutation{
		{name: id + " stopped", do: stop, plan: []string{"start " + id}, jobs: started},
		{name: id + " dead", do: func(h *memory.Host) { h.Crash(name, 1); stop(h) }, plan: []string{"start " + id}, jobs: started},
		mutation{name: id + " disabled", do: disable, plan: []string{"enable " + id}}.leaving(ledgerFile), // the image's link is berth's now
		mutation{name: id + " stopped and disabled", do: func(h *memory.Host) { stop(h); disable(h) },
			plan: []string{"enable " + id, "start " + id}, jobs: started}.leaving(ledgerFile),
		{name: id + " restarted", do: func(h *memory.Host) { check(h.RestartUnit(tctx, name)) }, plan: []string{}},
		mutation{name: id + " with a foreign drop-in", do: func(h *memory.Host) { h.Put(dropIn, "[Service]\nNice=5\n", 0o644) },
			plan: []string{"restart " + id}, jobs: []string{"restart " + name}, redefined: true}.leaving(added),
	}
	if _, err := h.Lstat("/etc/systemd/system/" + name); err == nil {
		return append(out, maskedInPlace(u))
	}
	return append(out, masked(u, "/etc")...)
}

// maskedInPlace is a mask where berth's own definition was.
func maskedInPlace(u *desired.Unit) mutation {
	p := "/etc/systemd/system/" + u.Name
	return mutation{name: string(u.ID()) + " masked in place of its definition", do: func(h *memory.Host) {
		check(h.Remove(p))
		h.PutLink("/dev/null", p, 0)
		check(h.DaemonReload(tctx))
	}, plan: []string{"update file:" + p, "reload " + string(u.ID())}}
}

func masked(u *desired.Unit, under string) []mutation {
	id := string(u.ID())
	mask := func(under string) func(h *memory.Host) {
		return func(h *memory.Host) {
			h.PutDir(under + "/systemd/system")
			h.PutLink("/dev/null", under+"/systemd/system/"+u.Name, 0)
			check(h.DaemonReload(tctx))
		}
	}
	unmask := []string{"unmask " + id, "reload " + id}
	runtime := mutation{name: id + " masked until the next boot", do: mask("/run"), plan: unmask}
	return []mutation{
		mutation{name: id + " masked", do: mask(under), plan: unmask}.leaving(ledgerFile, originals), // the mask is kept for its maker
		runtime.leaving("/run/systemd"),
		mutation{name: id + " masked and stopped", do: func(h *memory.Host) { check(h.StopUnit(tctx, u.Name)); mask(under)(h) },
			plan: []string{"unmask " + id, "start " + id}, jobs: []string{"start " + u.Name}}.leaving(ledgerFile, originals),
	}
}

func ofSysctl(h *memory.Host, s *desired.Sysctl) []mutation {
	p := parameter(s.Key)
	return []mutation{
		one(s, "set", "set", func(h *memory.Host) { check(h.WriteValue(p, []byte("7"))) }),
		one(s, "set with other white space", "", func(h *memory.Host) {
			check(h.WriteValue(p, []byte(" "+strings.Join(strings.Fields(s.Value), "   "))))
		}).nothing(),
	}
}

// nothing is a mutation that makes no difference.
func (m mutation) nothing() mutation {
	m.plan = []string{}
	return m
}

func ofModule(st *desired.State, m *desired.Module) []mutation {
	out := one(m, "unloaded", "load", func(h *memory.Host) {
		check(h.Remove("/sys/module/" + m.Name))
		for key := range brought[m.Name] {
			check(h.Remove(parameter(key)))
		}
	})
	for key := range brought[m.Name] {
		if st.Lookup(desired.SysctlID(key)) != nil {
			out.plan = append(out.plan, "set sysctl:"+key)
		}
	}
	return []mutation{out}
}
