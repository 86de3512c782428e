package memory

import (
	"io/fs"
	"path"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

const (
	modeDir  = fs.ModeDir
	modeLink = fs.ModeSymlink

	modeSticky = fs.ModeSticky
)

// inode is a file, directory or link. What a power cut leaves of it is in saved
// and, for the names in a directory, in durable.
type inode struct {
	ino      uint64
	dev      uint64
	links    uint64 // names in the live tree
	mode     fs.FileMode
	uid, gid int
	xattrs   map[string][]byte // replaced, never changed
	content  []byte
	target   string
	children map[string]*inode
	mtime    time.Time
	ctime    time.Time
	pseudo   bool
	fixed    bool // immutable or append-only

	durable map[string]*inode
	// dirty: content or attributes differ from saved. torn: the content does.
	dirty, torn bool
	saved       saved
}

// saved is the part of an inode that is on the disk for certain.
type saved struct {
	mode     fs.FileMode
	uid, gid int
	xattrs   map[string][]byte
	content  []byte
}

func (h *Host) newInode(mode fs.FileMode) *inode {
	h.nextIno++
	now := h.tick()
	n := &inode{ino: h.nextIno, dev: disk, mode: mode, mtime: now, ctime: now}
	if mode.IsDir() {
		n.children = map[string]*inode{}
		n.durable = map[string]*inode{}
	}
	n.save()
	return n
}

// save makes content and attributes durable.
func (n *inode) save() {
	n.saved = saved{n.mode, n.uid, n.gid, n.xattrs, n.content}
	n.dirty, n.torn = false, false
}

func (n *inode) info() host.Info {
	size := int64(len(n.content))
	switch {
	case n.pseudo:
		size = 0
	case n.mode.IsDir():
		size = 4096
	case n.mode&modeLink != 0:
		size = int64(len(n.target))
	}
	return host.Info{
		Mode: n.mode, UID: n.uid, GID: n.gid, Size: size,
		Links: n.links, Device: n.dev, Inode: n.ino, ModTime: n.mtime, ChangeTime: n.ctime,
		Immutable: n.fixed,
	}
}

// The devices of a machine in memory: its disk, and the kernel's values. Mounts
// have others.
const (
	disk   = 1
	kernel = 2
)

// attach gives an inode a name in the live tree, over what has it.
func (n *inode) attach(name string, child *inode) {
	n.detach(name)
	n.children[name] = child
	child.links++
}

// detach takes a name out of the live tree.
func (n *inode) detach(name string) {
	if child := n.children[name]; child != nil {
		child.links--
		delete(n.children, name)
	}
}

func (n *inode) isLink() bool { return n.mode&modeLink != 0 }

// chmod keeps the type bits.
func (n *inode) chmod(mode fs.FileMode, now time.Time) {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	n.mode = n.mode&^bits | mode&bits
	n.ctime, n.dirty = now, true
}

func (n *inode) chown(uid, gid int, now time.Time) {
	if uid >= 0 {
		n.uid = uid
	}
	if gid >= 0 {
		n.gid = gid
	}
	n.dropCapability()
	n.ctime, n.dirty = now, true
}

// nameOp is a change of names that is not yet durable: at most one name goes,
// at most one comes, and a power cut does both or neither.
type nameOp struct {
	fromDir, toDir *inode
	from, to       string
	node           *inode
}

func (o *nameOp) touches(dir *inode) bool { return o.fromDir == dir || o.toDir == dir }

func (o *nameOp) touchesName(dir *inode, name string) bool {
	return dir != nil && (o.fromDir == dir && o.from == name || o.toDir == dir && o.to == name)
}

// change does a name operation in the live tree and remembers it.
func (h *Host) change(o *nameOp) {
	now := h.tick()
	if o.fromDir != nil {
		o.fromDir.detach(o.from)
		o.fromDir.mtime, o.fromDir.ctime = now, now
	}
	if o.toDir != nil {
		o.toDir.attach(o.to, o.node)
		o.toDir.mtime, o.toDir.ctime = now, now
	}
	o.node.ctime = now
	h.pending = append(h.pending, o)
}

// commit makes the pending operation at index i durable, and before it the
// earlier ones on the same names: a directory entry has one history.
func (h *Host) commit(i int) {
	o := h.pending[i]
	if o == nil {
		return
	}
	h.pending[i] = nil
	for j, p := range h.pending[:i] {
		if p != nil && (p.touchesName(o.fromDir, o.from) || p.touchesName(o.toDir, o.to)) {
			h.commit(j)
		}
	}
	if o.fromDir != nil {
		delete(o.fromDir.durable, o.from)
	}
	if o.toDir != nil {
		o.toDir.durable[o.to] = o.node
	}
}

// commitWhere makes the pending operations durable that want says.
func (h *Host) commitWhere(want func(*nameOp) bool) {
	for i, o := range h.pending {
		if o != nil && want(o) {
			h.commit(i)
		}
	}
	h.dropDone()
}

func (h *Host) dropDone() {
	kept := h.pending[:0]
	for _, o := range h.pending {
		if o != nil {
			kept = append(kept, o)
		}
	}
	clear(h.pending[len(kept):])
	h.pending = kept
}

// each visits a tree in order of names, directories before what is in them.
func (n *inode) each(p string, visit func(p string, n *inode)) {
	visit(p, n)
	for _, name := range sortedKeys(n.children) {
		n.children[name].each(path.Join(p, name), visit)
	}
}
