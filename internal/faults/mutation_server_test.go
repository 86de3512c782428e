package faults_test

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// ofServer breaks the file with the lines, the server that reads them, and what else it reads.
func ofServer(s *desired.SSHD) []mutation {
	unit := s.Units[0]
	told := func(what, verb string, do func(h *memory.Host)) []mutation {
		plan, jobs := []string{verb + " file:" + s.Path, "reload unit:" + unit}, []string{"reload " + unit}
		m := mutation{name: string(s.ID()) + " " + what, do: do, plan: plan, jobs: jobs}
		read, restarted := m, m
		read.name += " and read"
		read.do = func(h *memory.Host) { do(h); check(h.ReloadUnit(tctx, unit)) }
		restarted.name += " and " + unit + " restarted"
		restarted.do = func(h *memory.Host) { do(h); check(h.RestartUnit(tctx, unit)) }
		return []mutation{m, read, restarted}
	}
	before := path.Join(path.Dir(s.Path), "00-a.conf")
	out := told("edited", "update", letIn)
	out = append(out, told("emptied", "update", func(h *memory.Host) { edit(h, s.Path, empty) })...)
	out = append(out, told("removed", "create", func(h *memory.Host) { check(h.Remove(s.Path)) })...)
	out = append(out, mutation{name: string(s.ID()) + " chmodded", do: func(h *memory.Host) { check(h.Chmod(s.Path, 0o644)) }, plan: []string{"update file:" + s.Path}})
	return append(append(out, ofServerUnit(s, unit)...),
		one(s, "with a line of others", "", func(h *memory.Host) { edit(h, ssh.Config, add("X11Forwarding no\n")) }).nothing().leaving(ssh.Config),
		refused(s, "with another file before it", `"yes" is in force`, func(h *memory.Host) { h.Put(before, "PubkeyAuthentication yes\n", 0o644) }),
	)
}

// ofServerUnit breaks the server's service, which runs or not as others want it.
func ofServerUnit(s *desired.SSHD, unit string) []mutation {
	id := string(desired.UnitID(unit))
	stopped := func(h *memory.Host) { check(h.StopUnit(tctx, unit)) }
	wants := "/etc/systemd/system/multi-user.target.wants/" + unit
	mask := func(h *memory.Host) {
		h.PutLink("/dev/null", "/etc/systemd/system/"+unit, 0)
		check(h.DaemonReload(tctx))
	}
	out := []mutation{
		one(s, "reloaded", "", func(h *memory.Host) { check(h.ReloadUnit(tctx, unit)) }).nothing(),
		one(s, "restarted", "", func(h *memory.Host) { check(h.RestartUnit(tctx, unit)) }).nothing(),
		one(s, "stopped", "", stopped).nothing(),
		{name: string(s.ID()) + " edited and stopped", do: func(h *memory.Host) { edit(h, s.Path, empty); stopped(h) }, plan: []string{"update file:" + s.Path}},
		one(s, "disabled", "", func(h *memory.Host) { check(h.Remove(wants)); check(h.DaemonReload(tctx)) }).nothing().leaving(wants),
		mutation{name: id + " masked", do: mask, plan: []string{"unmask " + id, "reload " + id}}.leaving(ledgerFile, originals),
		mutation{name: id + " masked and stopped", do: func(h *memory.Host) { stopped(h); mask(h) }, plan: []string{"unmask " + id, "reload " + id}}.leaving(ledgerFile, originals),
	}
	for i := range out {
		out[i].redefined = strings.Contains(out[i].name, "stopped")
	}
	return out
}

// ofPodNetwork breaks what the runtime makes, and what it makes it of.
func ofPodNetwork(n *desired.PodNetwork) []mutation {
	unit, file := string(desired.UnitID(n.Unit)), "file:"+n.Template
	anew := func(what string, plan []string, do func(h *memory.Host)) mutation {
		return mutation{name: string(n.ID()) + " " + what, do: do, plan: append(plan, "restart "+unit), jobs: []string{"restart " + n.Unit}}
	}
	away := func() []string { return []string{"delete " + string(n.ID())} }
	removed := func(h *memory.Host) { check(h.Remove(n.File)) }
	other := path.Join(path.Dir(n.File), "05-other.conf")
	return []mutation{
		anew("removed", nil, removed),
		anew("removed and "+n.Unit+" restarted without a network", nil, func(h *memory.Host) { check(h.RestartUnit(tctx, n.Unit)); removed(h) }),
		anew("edited", away(), func(h *memory.Host) { edit(h, n.File, add("edited\n")) }),
		anew("emptied", away(), func(h *memory.Host) { edit(h, n.File, empty) }),
		anew("made a link", away(), func(h *memory.Host) { removed(h); h.PutLink("/tmp/moved", n.File, 0) }),
		anew("made an empty directory", away(), func(h *memory.Host) { removed(h); h.PutDir(n.File) }),
		anew("with other addresses", away(), func(h *memory.Host) { h.Put(podAddresses, "10.244.9.0/24", 0o600) }).leaving(podAddresses, n.File),
		anew("of an edited template", append(away(), "update "+file), func(h *memory.Host) {
			edit(h, n.Template, func(text string) string { return strings.Replace(text, "cbr0", "br9", 1) })
			removed(h)
			check(h.RestartUnit(tctx, n.Unit))
		}),
		anew("and its template removed", []string{"create " + file}, func(h *memory.Host) { removed(h); check(h.Remove(n.Template)) }),
		anew("removed with its directory", []string{"create directory:" + path.Dir(n.File)}, func(h *memory.Host) { removeAll(h, path.Dir(n.File)) }),
		one(n, "chmodded", "", func(h *memory.Host) { check(h.Chmod(n.File, 0o600)) }).nothing().leaving(n.File),
		one(n, "beside another", "", func(h *memory.Host) { h.Put(other, "{}", 0o644) }).nothing().leaving(other),
		one(n, "removed for another", "", func(h *memory.Host) { removed(h); h.Put(other, "{}", 0o644) }).nothing().leaving(other, n.File),
		one(n, "removed, without addresses", "", func(h *memory.Host) { removed(h); check(h.Remove(podAddresses)) }).nothing().leaving(podAddresses, n.File),
		refused(n, "made a directory with entries", n.File, func(h *memory.Host) { removed(h); h.Put(n.File+"/entry", "", 0o644) }),
	}
}
