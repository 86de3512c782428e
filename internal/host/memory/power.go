package memory

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
)

// Seeds with a meaning; every other seed is a random choice.
const (
	// LoseAll: nothing survives that was not made durable.
	LoseAll = 0
	// NamesOnly: every name survives, no content that was not synced: the file
	// system that commits metadata first.
	NamesOnly = 1
)

// PowerCut takes the power away. Of what was not made durable, seed decides what
// survives: each change of names happens or not as a whole, independent of
// others except earlier ones on the same names; the content of each file
// that was not synced is there, or as it was at its last sync, or short, or
// zeros; attributes are the new or the old ones. The machine is off until Boot.
func (h *Host) PowerCut(seed uint64) {
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := chooser{seed, rand.New(rand.NewPCG(seed, 0))}
	for i := range h.pending {
		if c.nameSurvives() {
			h.commit(i)
		}
	}
	h.pending = nil
	h.mounts = nil
	h.fall()
	h.root.each("/", func(_ string, n *inode) {
		if n.dirty {
			c.damage(n)
		}
		n.save()
	})
	h.off = true
	h.kill()
	h.systemd.forget()
}

// fall makes the live tree what the disk holds.
func (h *Host) fall() {
	links := map[*inode]uint64{}
	var visit func(*inode)
	visit = func(n *inode) {
		if !n.mode.IsDir() {
			return
		}
		n.children = map[string]*inode{}
		for _, name := range sortedKeys(n.durable) {
			child := n.durable[name]
			n.children[name] = child
			links[child]++
			child.links = links[child]
			visit(child)
		}
	}
	visit(h.root)
}

// chooser decides what survives.
type chooser struct {
	seed uint64
	rng  *rand.Rand
}

func (c chooser) nameSurvives() bool {
	switch c.seed {
	case LoseAll:
		return false
	case NamesOnly:
		return true
	}
	return c.rng.IntN(2) == 0
}

func (c chooser) damage(n *inode) {
	if c.seed == LoseAll || c.seed == NamesOnly || c.rng.IntN(2) == 0 {
		n.mode, n.uid, n.gid, n.xattrs = n.saved.mode, n.saved.uid, n.saved.gid, n.saved.xattrs
	}
	if !n.torn {
		return
	}
	if c.seed == LoseAll || c.seed == NamesOnly {
		n.content = n.saved.content
		return
	}
	switch c.rng.IntN(4) {
	case 0: // kept
	case 1:
		n.content = n.saved.content
	case 2:
		n.content = slices.Clip(n.content[:c.rng.IntN(len(n.content)+1)])
	case 3:
		n.content = make([]byte, len(n.content))
	}
}

// Flush makes everything durable, as sync(8) or half a minute does.
func (h *Host) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush()
}

func (h *Host) flush() {
	h.commitWhere(func(*nameOp) bool { return true })
	h.root.each("/", func(_ string, n *inode) { n.save() })
}

// Boot starts the machine: after PowerCut with what the disk holds, else as a
// clean reboot. /run and /tmp are empty, the packet filter has no tables, values under /proc and /sys are those
// of Value, the boot ID is new, and the units that targets want start.
func (h *Host) Boot() {
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	if !h.off {
		h.unmountAll()
		h.flush()
		h.kill()
		h.systemd.forget()
	}
	h.off = false
	h.empty("/run")
	h.empty("/tmp")
	clear(h.tables)
	h.filterNames = nil
	for _, p := range sortedKeys(h.values) {
		h.install(p, &inode{mode: 0o644, content: []byte(h.values[p].boot), pseudo: true})
	}
	h.bootID()
	h.startUserspace()
}

// SoftReboot starts userspace anew, as systemctl soft-reboot does: all units end, and
// those that targets want start. The kernel stays, with its boot ID, and so does /run.
func (h *Host) SoftReboot() {
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	h.kill()
	h.systemd.forget()
	h.startUserspace()
}

// startUserspace is the part of a boot that systemd has. It is called with the lock,
// and gives it back.
func (h *Host) startUserspace() {
	h.starts++
	h.flush()
	h.loadAll()
	h.mu.Unlock()
	h.startBoot()
}

func (h *Host) empty(p string) {
	n, err := h.find(p)
	if err != nil || !n.mode.IsDir() {
		return
	}
	for _, name := range sortedKeys(n.children) {
		n.detach(name)
	}
	clear(n.durable)
}

// bootID counts the boot. The ID is in the file where the kernel has it.
func (h *Host) bootID() {
	h.boots++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x\n", h.boots)
	h.install(path.Join("/proc/sys/kernel/random", "boot_id"), &inode{mode: 0o444, content: []byte(id), pseudo: true})
}

// Boots says how often the machine has booted; a new one: 1.
func (h *Host) Boots() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boots
}
