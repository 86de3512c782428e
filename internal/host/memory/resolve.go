package memory

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// maxLinks is the kernel's limit on links in one resolution (path_resolution(7)).
const maxLinks = 40

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func pathError(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// dirEntry is a name in a directory; node is nil where the name is free.
type dirEntry struct {
	dir  *inode
	name string
	node *inode
}

// locate finds the directory entry of a path without following its last element.
func (h *Host) locate(p string) (dirEntry, error) {
	if err := host.CheckPath(p); err != nil {
		return dirEntry{}, err
	}
	if p == "/" {
		return dirEntry{dir: h.root, name: ".", node: h.root}, nil
	}
	dir, err := h.walkDir(path.Dir(p), true)
	if err != nil {
		return dirEntry{}, err
	}
	name := path.Base(p)
	return dirEntry{dir, name, dir.children[name]}, nil
}

// find is locate of a path that must exist.
func (h *Host) find(p string) (*inode, error) {
	at, err := h.locate(p)
	if err == nil && at.node == nil {
		err = syscall.ENOENT
	}
	return at.node, err
}

// walkDir resolves a directory; safe applies the rule for parents.
func (h *Host) walkDir(p string, safe bool) (*inode, error) {
	n, err := h.follow(p, safe)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return n, nil
}

// follow resolves a path and every link in it. With safe, a link that root does
// not own or that leads to a file system of the kernel is refused.
func (h *Host) follow(p string, safe bool) (*inode, error) {
	for range maxLinks {
		n, next, err := h.walk(p)
		if err != nil || next == "" {
			return n, err
		}
		if safe && (n.uid != 0 || host.LeadsAstray(p, next)) {
			return nil, host.ErrUnsafeParent
		}
		p = next
	}
	return nil, syscall.ELOOP
}

// walk goes along a path up to the first link; next is the path with that link
// replaced by its target, empty if there was none.
func (h *Host) walk(p string) (n *inode, next string, err error) {
	n = h.root
	for rest := strings.TrimPrefix(p, "/"); rest != ""; {
		name, tail, _ := strings.Cut(rest, "/")
		if !n.mode.IsDir() {
			return nil, "", syscall.ENOTDIR
		}
		child, ok := n.children[name]
		if !ok {
			return nil, "", syscall.ENOENT
		}
		if child.isLink() {
			return child, host.Splice(p[:len(p)-len(rest)], child.target, tail), nil
		}
		n, rest = child, tail
	}
	return n, "", nil
}
