package memory

import (
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// effect runs a change of a directory entry under the lock.
func (h *Host) effect(op, p string, do func(dirEntry) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, err := h.locate(p)
	if err == nil && at.fixed(op) {
		err = syscall.EPERM
	}
	if err == nil {
		err = do(at)
	}
	if err != nil {
		return pathError(op, p, err)
	}
	return nil
}

// fixed says that an attribute forbids what is to happen to a directory entry: nothing of
// an immutable file changes, and no name in an immutable directory.
func (at dirEntry) fixed(op string) bool {
	own := at.node != nil && at.node.fixed
	switch op {
	case "chmod", "chown", "setxattr":
		return own
	case "rename", "remove":
		return own || at.dir.fixed
	case "mkdir", "symlink", "link", "open":
		return at.node == nil && at.dir.fixed
	}
	return false
}

// add puts a new inode at a free name.
func (h *Host) add(at dirEntry, n *inode) error {
	if at.node != nil {
		return syscall.EEXIST
	}
	if n.links == 0 {
		n.dev = at.dir.dev
	}
	h.change(&nameOp{toDir: at.dir, to: at.name, node: n})
	return nil
}

// Create implements host.FS.
func (h *Host) Create(p string) (host.File, error) {
	f := &file{h: h, path: p}
	err := h.effect("open", p, func(at dirEntry) error {
		if at.node != nil {
			return syscall.EEXIST
		}
		f.node, f.process = h.newInode(0o600), h.process
		return h.add(at, f.node)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Append implements host.Appender.
func (h *Host) Append(p string) (io.WriteCloser, error) {
	f := &file{h: h, path: p}
	err := h.effect("open", p, func(at dirEntry) error {
		f.node, f.process = at.node, h.process
		if at.node != nil {
			return regular(at.node)
		}
		f.node = h.newInode(0o600)
		return h.add(at, f.node)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements host.FS.
func (h *Host) Mkdir(p string, mode fs.FileMode) error {
	return h.effect("mkdir", p, func(at dirEntry) error {
		n := h.newInode(modeDir)
		n.chmod(mode, n.ctime)
		n.save()
		return h.add(at, n)
	})
}

// Symlink implements host.FS.
func (h *Host) Symlink(target, p string) error {
	return h.effect("symlink", p, func(at dirEntry) error {
		if target == "" {
			return syscall.ENOENT
		}
		n := h.newInode(modeLink | 0o777)
		n.target = target
		return h.add(at, n)
	})
}

// Link implements host.FS.
func (h *Host) Link(oldpath, newpath string) error {
	return h.effect("link", newpath, func(to dirEntry) error {
		node, err := h.find(oldpath)
		switch {
		case err != nil:
			return err
		case to.node != nil:
			return syscall.EEXIST
		case node.dev != to.dir.dev:
			return syscall.EXDEV
		case node.fixed, node.mode.IsDir():
			return syscall.EPERM
		}
		return h.add(to, node)
	})
}

// Rename implements host.FS.
func (h *Host) Rename(oldpath, newpath string) error {
	return h.effect("rename", newpath, func(to dirEntry) error {
		from, err := h.locate(oldpath)
		switch {
		case err != nil:
			return err
		case from.dir.dev != to.dir.dev:
			return syscall.EXDEV
		case from.node == nil:
			return syscall.ENOENT
		case from.fixed("rename"):
			return syscall.EPERM
		case h.mounted(from), h.mounted(to):
			return syscall.EBUSY
		case h.swapsTo(from.node), h.swapsTo(to.node):
			return syscall.EPERM
		case from.node == to.node:
			return nil
		case from.node.mode.IsDir() && inside(oldpath, newpath):
			return syscall.EINVAL
		}
		if err := mayReplace(from.node, to.node); err != nil {
			return err
		}
		h.change(&nameOp{fromDir: from.dir, from: from.name, toDir: to.dir, to: to.name, node: from.node})
		return nil
	})
}

func inside(dir, p string) bool { return strings.HasPrefix(p, dir+"/") }

// mayReplace is the rule of rename(2) for what stands at the new name.
func mayReplace(from, to *inode) error {
	switch {
	case to == nil:
		return nil
	case !from.mode.IsDir() && to.mode.IsDir():
		return syscall.EISDIR
	case from.mode.IsDir() && !to.mode.IsDir():
		return syscall.ENOTDIR
	case len(to.children) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// Remove implements host.FS.
func (h *Host) Remove(p string) error {
	return h.effect("remove", p, func(at dirEntry) error {
		switch {
		case at.node == nil:
			return syscall.ENOENT
		case at.node == h.root, h.mounted(at):
			return syscall.EBUSY
		case h.swapsTo(at.node):
			return syscall.EPERM
		case len(at.node.children) > 0:
			return syscall.ENOTEMPTY
		}
		h.change(&nameOp{fromDir: at.dir, from: at.name, node: at.node})
		return nil
	})
}

// Chmod implements host.FS.
func (h *Host) Chmod(p string, mode fs.FileMode) error {
	return h.effect("chmod", p, func(at dirEntry) error {
		switch {
		case at.node == nil:
			return syscall.ENOENT
		case at.node.isLink():
			return syscall.EOPNOTSUPP
		}
		at.node.chmod(mode, h.tick())
		return nil
	})
}

// Chown implements host.FS.
func (h *Host) Chown(p string, uid, gid int) error {
	return h.effect("chown", p, func(at dirEntry) error {
		if at.node == nil {
			return syscall.ENOENT
		}
		at.node.chown(uid, gid, h.tick())
		return nil
	})
}

// SyncFile implements host.FS.
func (h *Host) SyncFile(p string) error {
	return h.effect("sync", p, func(at dirEntry) error {
		if at.node == nil {
			return syscall.ENOENT
		}
		if err := regular(at.node); err != nil {
			return err
		}
		h.tick()
		at.node.save()
		return nil
	})
}

// SyncDir implements host.FS.
func (h *Host) SyncDir(p string) error {
	return h.effect("sync", p, func(at dirEntry) error {
		switch {
		case at.node == nil:
			return syscall.ENOENT
		case !at.node.mode.IsDir():
			return syscall.ENOTDIR
		}
		h.tick()
		at.node.save()
		h.commitWhere(func(o *nameOp) bool { return o.touches(at.node) })
		return nil
	})
}
