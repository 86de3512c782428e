package memory

import (
	"maps"
	"slices"
	"strings"
	"syscall"
)

// capability is the extended attribute that the kernel takes away from a file
// whose content or owner changes.
const capability = "security.capability"

// Xattrs implements host.FS.
func (h *Host) Xattrs(p string) (map[string][]byte, error) {
	return look(h, "listxattr", p, func(n *inode) (map[string][]byte, error) {
		out := map[string][]byte{}
		for name, value := range n.xattrs {
			out[name] = slices.Clone(value)
		}
		return out, nil
	})
}

// SetXattr implements host.FS.
func (h *Host) SetXattr(p, name string, value []byte) error {
	return h.effect("setxattr", p, func(at dirEntry) error {
		if at.node == nil {
			return syscall.ENOENT
		}
		if err := mayHave(at.node, name); err != nil {
			return err
		}
		at.node.setXattr(name, value)
		at.node.ctime, at.node.dirty = h.tick(), true
		return nil
	})
}

// mayHave is the rule of xattr(7) for names.
func mayHave(n *inode, name string) error {
	space, _, _ := strings.Cut(name, ".")
	switch {
	case n.pseudo, !slices.Contains([]string{"user", "security", "trusted", "system"}, space):
		return syscall.EOPNOTSUPP
	case space == "user" && !n.mode.IsRegular() && !n.mode.IsDir():
		return syscall.EPERM
	}
	return nil
}

func (n *inode) setXattr(name string, value []byte) {
	all := maps.Clone(n.xattrs)
	if all == nil {
		all = map[string][]byte{}
	}
	all[name] = slices.Clone(value)
	n.xattrs = all
}

func (n *inode) dropCapability() {
	if _, has := n.xattrs[capability]; !has {
		return
	}
	n.xattrs = maps.Clone(n.xattrs)
	delete(n.xattrs, capability)
}
