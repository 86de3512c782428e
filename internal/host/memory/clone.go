package memory

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/internal/host"
)

// Clone is another machine in the state of this one, at much less than the cost of
// arranging one. Behaviours and programs are functions of the machine that they were
// made for: the clone has none, its arranger gives it those of its own. Nor does any
// process use it: locks, open files and watches stay behind.
func (h *Host) Clone() *Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Host{
		now: h.now, stepped: h.stepped, nextIno: h.nextIno, devices: h.devices, process: h.process,
		boots: h.boots, starts: h.starts, off: h.off, noTables: h.noTables,
		values: maps.Clone(h.values), locks: map[string]*lockState{}, programs: map[string]Program{},
		tables: map[string]host.FilterTable{}, filterNames: slices.Clone(h.filterNames),
		watchers: map[*watcher]bool{}, systemd: h.systemd.clone(),
	}
	for name, t := range h.tables {
		c.tables[name] = cloneTable(t)
	}
	copies := inodeCopies{}
	c.root = copies.of(h.root)
	for _, o := range h.pending {
		c.pending = append(c.pending, &nameOp{copies.of(o.fromDir), copies.of(o.toDir), o.from, o.to, copies.of(o.node)})
	}
	for _, m := range h.mounts {
		at := m.at
		at.dir, at.node = copies.of(at.dir), copies.of(at.node)
		c.mounts = append(c.mounts, &mount{m.Mount, at, copies.of(m.on), copies.of(m.root)})
	}
	return c
}

// inodeCopies are the copies of inodes: one each, whatever names and links it has.
type inodeCopies map[*inode]*inode

func (all inodeCopies) of(n *inode) *inode {
	if n == nil || all[n] != nil {
		return all[n]
	}
	c := *n
	all[n] = &c
	// What is written is appended: it must not come into what others have, too.
	c.content, c.saved.content = slices.Clip(n.content), slices.Clip(n.saved.content)
	c.children, c.durable = all.names(n.children), all.names(n.durable)
	return &c
}

func (all inodeCopies) names(of map[string]*inode) map[string]*inode {
	if of == nil {
		return nil
	}
	out := make(map[string]*inode, len(of))
	for name, n := range of {
		out[name] = all.of(n)
	}
	return out
}

// clone leaves out the behaviours, and what is found again.
func (m *manager) clone() manager {
	c := newManager()
	c.runs, c.reloads, c.log = m.runs, m.reloads, slices.Clone(m.log)
	c.dropInDirs, c.aliases, c.told = maps.Clone(m.dropInDirs), maps.Clone(m.aliases), maps.Clone(m.told)
	for unit, paths := range m.reads {
		c.reads[unit] = slices.Clone(paths)
	}
	for name, u := range m.units {
		of := *u
		of.recent, of.job = slices.Clone(u.recent), false
		if u.def != nil {
			def := *u.def
			of.def = &def
		}
		c.units[name] = &of
	}
	return c
}
