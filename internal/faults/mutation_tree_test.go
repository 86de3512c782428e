package faults_test

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

func ofFile(h *memory.Host, st *desired.State, f *desired.File) []mutation {
	p := f.Path
	if f.Life == desired.Transient {
		return []mutation{one(f, "there again", "delete", func(h *memory.Host) { h.Put(p, "old", 0o600) })}
	}
	out := replaced(f, p)
	if len(f.Content.Data()) == 0 { // emptying it is no mutation
		out = slices.DeleteFunc(out, func(m mutation) bool { return strings.HasSuffix(m.name, " emptied") })
	}
	for i := range out {
		for _, u := range loadedFrom(h, st, p) {
			out[i].plan = append(out[i].plan, "reload unit:"+u)
		}
	}
	for _, u := range rereadBy(h, st, p) {
		for i, m := range out {
			if !strings.HasSuffix(m.name, " chmodded") && !strings.HasSuffix(m.name, " chowned") { // that it reads nothing of
				out[i].plan, out[i].jobs = append(m.plan, "reload unit:"+u), append(m.jobs, "reload "+u)
			}
		}
	}
	for _, u := range usedBy(st, p) {
		m := one(f, "edited and "+u+" restarted", "update", func(h *memory.Host) {
			edit(h, p, add("\n"))
			check(h.DaemonReload(tctx))
			check(h.RestartUnit(tctx, u))
		})
		m.plan, m.jobs = append(m.plan, "restart unit:"+u), []string{"restart " + u}
		for _, loaded := range loadedFrom(h, st, p) {
			if loaded != u {
				m.plan = append(m.plan, "reload unit:"+loaded)
			}
		}
		out = append(out, m)
	}
	return append(out, refused(f, "made a directory with entries", p, func(h *memory.Host) {
		removeAll(h, p)
		h.Put(p+"/entry", "", 0o644)
	}))
}

// replaced are the ways in which a file may be other than wanted.
func replaced(r desired.Resource, p string) []mutation {
	return []mutation{
		one(r, "edited", "update", func(h *memory.Host) { edit(h, p, add("edited\n")) }),
		one(r, "emptied", "update", func(h *memory.Host) { edit(h, p, empty) }),
		one(r, "chmodded", "update", func(h *memory.Host) { check(h.Chmod(p, 0o751)) }),
		one(r, "chowned", "update", func(h *memory.Host) { check(h.Chown(p, 1000, 1001)) }),
		one(r, "removed", "create", func(h *memory.Host) { check(h.Remove(p)) }),
		one(r, "made a link", "update", func(h *memory.Host) {
			text := content(h, p)
			check(h.Remove(p))
			h.Put("/tmp/moved", text, 0o644)
			h.PutLink("/tmp/moved", p, 0)
		}).leaving("/tmp/moved"),
		one(r, "made an empty directory", "update", func(h *memory.Host) { check(h.Remove(p)); h.PutDir(p) }),
	}
}

func (m mutation) leaving(paths ...string) mutation {
	m.stays = append(m.stays, paths...)
	return m
}

// loadedFrom are the units that systemd runs, or starts at a time, and whose definition a path
// is, of the state or not: a slice that a service is in, a timer's service.
func loadedFrom(h *memory.Host, st *desired.State, p string) []string {
	if name := path.Base(p); p == "/etc/systemd/system/"+name && (h.Units()[name].ActiveState == "active" || h.Units()[strings.TrimSuffix(name, ".service")+".timer"].ActiveState == "active") {
		return []string{name}
	}
	return definedBy(st, p)
}

// definedBy are the units whose definition a path is, usedBy those that read it
// when they start.
func definedBy(st *desired.State, p string) []string {
	return unitsWith(st, func(u *desired.Unit) bool {
		def := "/etc/systemd/system/" + u.Name
		return p == def || path.Dir(p) == def+".d"
	})
}

func usedBy(st *desired.State, p string) []string {
	return append(definedBy(st, p), unitsWith(st, func(u *desired.Unit) bool { return slices.Contains(u.Triggers, p) })...)
}

// rereadBy are the units that run and reread a path.
func rereadBy(h *memory.Host, st *desired.State, p string) []string {
	return unitsWith(st, func(u *desired.Unit) bool {
		return slices.Contains(u.ReloadTriggers, p) && h.Units()[u.Name].ActiveState == "active"
	})
}

func unitsWith(st *desired.State, want func(*desired.Unit) bool) []string {
	var out []string
	for _, r := range st.Resources {
		if u, ok := r.(*desired.Unit); ok && want(u) {
			out = append(out, u.Name)
		}
	}
	return out
}

func ofDirectory(h *memory.Host, st *desired.State, d *desired.Directory) []mutation {
	p := d.Path
	out := []mutation{
		one(d, "chmodded", "update", func(h *memory.Host) { check(h.Chmod(p, 0o711)) }),
		one(d, "chowned", "update", func(h *memory.Host) { check(h.Chown(p, 1000, 1001)) }),
		refused(d, "made a file", p, func(h *memory.Host) { removeAll(h, p); h.Put(p, "", 0o644) }),
		refused(d, "made a link", p, func(h *memory.Host) { removeAll(h, p); h.PutLink("/mnt", p, 0) }),
	}
	if entries, all := managed(h, st, p); all {
		m := one(d, "removed with its entries", "create", func(h *memory.Host) { removeAll(h, p) })
		m.plan = append(m.plan, entries...)
		out = append(out, m)
	}
	return out
}

// managed are the actions that bring back what is in a directory; all is false
// where there is something that no file of the state brings back.
func managed(h *memory.Host, st *desired.State, dir string) (actions []string, all bool) {
	for p, what := range h.Tree(dir) {
		_, ok := st.Lookup(desired.FileID(p)).(*desired.File)
		switch {
		case p == dir || !ok && strings.HasPrefix(what, "d"):
		case !ok:
			return nil, false
		default:
			actions = append(actions, "create file:"+p)
		}
	}
	return actions, true
}

func ofTrust(h *memory.Host, a *desired.TrustAnchor) []mutation {
	file := replaced(a, anchors+"/"+a.Name+".crt")
	for i, m := range file { // of what was there the bundle may be made
		if !strings.HasSuffix(m.name, "chmodded") && !strings.HasSuffix(m.name, "chowned") && !strings.HasSuffix(m.name, "removed") {
			file[i].plan = append(m.plan, "update "+string(a.ID()))
		}
	}
	return append(file,
		one(a, "not in the bundle", "update", func(h *memory.Host) {
			edit(h, bundle, func(text string) string { return strings.ReplaceAll(text, strings.TrimSpace(a.PEM), "") })
		}))
}

func ofArtifact(h *memory.Host, st *desired.State, a *desired.Artifact) []mutation {
	var out []mutation
	for _, f := range a.Files {
		p := f.Path
		out = append(out, one(a, p+" can't run", "update", func(h *memory.Host) { check(h.Chmod(p, 0o644)) }))
		if len(a.URLs) == 0 {
			out = append(out, refused(a, p+" removed", "absent", func(h *memory.Host) { check(h.Remove(p)) }))
			continue
		}
		m := one(a, p+" removed", "fetch", func(h *memory.Host) { check(h.Remove(p)) }).leaving(ledgerFile, originals) // now it is berth's
		for _, g := range a.Files {
			for _, u := range usedBy(st, g.Path) {
				m.plan, m.jobs = append(m.plan, "restart unit:"+u), append(m.jobs, "restart "+u)
			}
		}
		out = append(out, m)
	}
	if a.Version != "" {
		m := out[len(out)-1]
		m.name, m.do = string(a.ID())+" of another version", func(h *memory.Host) {
			edit(h, a.Files[0].Path, func(string) string { return program(a.Files[0].Path, "0.0.1") })
		}
		out = append(out, m)
	}
	return out
}

func ofServing(h *memory.Host, s *desired.ServingCertificate) []mutation {
	return []mutation{
		one(s, "certificate edited", "issue", func(h *memory.Host) { edit(h, s.CertFile, empty) }),
		one(s, "certificate removed", "issue", func(h *memory.Host) { check(h.Remove(s.CertFile)) }),
		one(s, "key removed", "issue", func(h *memory.Host) { check(h.Remove(s.KeyFile)) }),
		one(s, "key chmodded", "update", func(h *memory.Host) { check(h.Chmod(s.KeyFile, 0o644)) }),
		one(s, "certificate chowned", "update", func(h *memory.Host) { check(h.Chown(s.CertFile, 1000, 1001)) }),
	}
}

func ofCredential(h *memory.Host, c *desired.ClientCertificate) []mutation {
	renewed := func(what string, do func(h *memory.Host)) mutation {
		m := one(c, what, "issue", do)
		m.plan, m.jobs = append(m.plan, "restart unit:kubelet.service"), []string{"restart kubelet.service"}
		return m
	}
	pair, current := c.CertDir+"/kubelet-client-berth.pem", c.CertDir+"/kubelet-client-current.pem"
	return []mutation{
		renewed("names another server", func(h *memory.Host) {
			edit(h, c.Kubeconfig, func(s string) string { return strings.ReplaceAll(s, "https://", "https://other.") })
		}),
		renewed("emptied", func(h *memory.Host) { edit(h, c.Kubeconfig, empty) }),
		renewed("removed", func(h *memory.Host) { check(h.Remove(c.Kubeconfig)) }),
		renewed("without a pair", func(h *memory.Host) { check(h.Remove(pair)) }),
		renewed("without a current pair", func(h *memory.Host) { check(h.Remove(current)) }),
		one(c, "chmodded", "update", func(h *memory.Host) { check(h.Chmod(c.Kubeconfig, 0o644)) }),
		one(c, "with a pair that all may read", "update", func(h *memory.Host) { check(h.Chmod(pair, 0o644)) }),
		one(c, "with a pair of somebody else", "update", func(h *memory.Host) { check(h.Chown(pair, 1000, 1001)) }),
	}
}
