package memory

import (
	"context"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// mount is a file system on a directory, which it covers.
type mount struct {
	host.Mount
	at       dirEntry
	on, root *inode
}

// Mounts implements host.Mounter.
func (h *Host) Mounts(ctx context.Context) ([]host.Mount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []host.Mount{{Source: "/dev/vda", Target: "/", Type: "ext4", Options: []string{"rw"}}}
	for _, m := range h.mounts {
		m.Options = slices.Clone(m.Options)
		all = append(all, m.Mount)
	}
	return all, nil
}

// Mount implements host.Mounter. A machine in memory knows tmpfs only; anything
// else is ENODEV. What is mounted is gone after a boot.
func (h *Host) Mount(ctx context.Context, m host.Mount) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.effect("mount", m.Target, func(at dirEntry) error {
		switch {
		case at.node == nil:
			return syscall.ENOENT
		case m.Type != "tmpfs":
			return syscall.ENODEV
		case !at.node.mode.IsDir():
			return syscall.ENOTDIR
		case at.node == h.root:
			return syscall.EBUSY
		}
		h.mount(m, at)
		return nil
	})
}

// mount covers a directory with a new file system.
func (h *Host) mount(m host.Mount, at dirEntry) {
	root := h.newInode(modeDir | 0o777 | modeSticky)
	h.devices++
	root.dev = kernel + h.devices
	if m.Options = slices.Clone(m.Options); !slices.Contains(m.Options, "ro") && !slices.Contains(m.Options, "rw") {
		m.Options = append([]string{"rw"}, m.Options...)
	}
	h.mounts = append(h.mounts, &mount{m, at, at.node, root})
	at.dir.children[at.name] = root
}

// Unmount implements host.Mounter.
func (h *Host) Unmount(ctx context.Context, target string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.effect("unmount", target, func(at dirEntry) error {
		switch at.node {
		case nil:
			return syscall.ENOENT
		case h.root:
			return syscall.EBUSY
		}
		i := slices.IndexFunc(h.mounts, func(m *mount) bool { return m.root == at.node })
		switch {
		case i < 0:
			return syscall.EINVAL
		case slices.ContainsFunc(h.mounts, func(m *mount) bool { return m.at.dir.dev == at.node.dev }):
			return syscall.EBUSY
		}
		h.tick()
		h.unmount(i)
		return nil
	})
}

func (h *Host) unmount(i int) {
	m := h.mounts[i]
	m.at.dir.children[m.at.name] = m.on
	h.mounts = slices.Delete(h.mounts, i, i+1)
}

// unmountAll is what a shutdown does.
func (h *Host) unmountAll() {
	for i := len(h.mounts) - 1; i >= 0; i-- {
		h.unmount(i)
	}
}

// mounted says whether something is mounted at a directory entry.
func (h *Host) mounted(at dirEntry) bool {
	return at.node != nil && h.isMountRoot(at.node)
}

// isMountRoot says whether an inode is what something else shows where it is mounted.
func (h *Host) isMountRoot(n *inode) bool {
	return slices.ContainsFunc(h.mounts, func(m *mount) bool { return m.root == n })
}
