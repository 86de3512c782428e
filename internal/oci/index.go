package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"strings"
)

// Marks of a path in a layer: at most one kind, and what it hides below.
const (
	kindDir byte = 1 + iota
	kindFile
	kindSymlink
	kindHardLink
	kindOther
	kindMask = 0x0f
	// markWhiteout hides the path in lower layers, markOpaque what is in it there.
	markWhiteout = 0x10
	markOpaque   = 0x20
)

const (
	// maxName is Linux's PATH_MAX; maxDepth is far beyond real trees.
	maxName  = 4096
	maxDepth = 256
	// maxEntries and maxLinkBytes bound the memory for names and links of an image.
	maxEntries   = 1e6
	maxLinkBytes = 32 << 20
)

// room is what the indexes of an image may still take together. A file in a deep
// directory takes as many names as directories are first heard of by it.
type room struct{ names, linkBytes int }

// index is the names in a layer. Names are kept as 64-bit hashes under a secret
// seed: a million of them take some 20 MB, and nobody can make two collide.
type index struct {
	seed  maphash.Seed
	marks map[uint64]byte
	// links are the targets of symbolic and hard links, as written.
	links map[string]string
	room  *room
}

func newIndex(seed maphash.Seed, r *room) *index {
	return &index{seed: seed, marks: map[uint64]byte{}, links: map[string]string{}, room: r}
}

func (ix *index) key(name string) uint64 { return maphash.String(ix.seed, name) }

func (ix *index) mark(name string) byte { return ix.marks[ix.key(name)] }

// cleanName is a name of an archive without its leading slash and dot; one that
// climbs is refused.
func cleanName(name string) (string, error) {
	if len(name) > maxName || strings.Count(name, "/") > maxDepth {
		return "", errors.New("the name is too long or too deep")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("the name climbs out of its directory")
		}
	}
	if strings.IndexByte(name, 0) >= 0 {
		return "", errors.New("the name holds a zero byte")
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

const whiteout = ".wh."

// add takes an entry in and returns its clean name.
func (ix *index) add(h *tar.Header) (string, error) {
	name, err := cleanName(h.Name)
	if err != nil {
		return "", err
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	kind := kindOf(h.Typeflag)
	if hidden, ok := strings.CutPrefix(base, whiteout); ok {
		err = ix.hide(dir, hidden)
	} else if name != "" {
		ix.put(name, kindMask, kind)
		ix.imply(dir)
		if kind == kindSymlink || kind == kindHardLink {
			err = ix.link(name, h.Linkname)
		}
	}
	if err == nil && ix.room.names < 0 {
		err = fmt.Errorf("%w: too many names", ErrBounds)
	}
	return name, err
}

// put changes the marks of a path.
func (ix *index) put(name string, clear, set byte) {
	k := ix.key(name)
	m, ok := ix.marks[k]
	if !ok {
		ix.room.names--
	}
	ix.marks[k] = m&^clear | set
}

// hide takes in a whiteout of a name in dir.
func (ix *index) hide(dir, hidden string) error {
	switch {
	case hidden == ".wh..opq":
		ix.put(dir, 0, markOpaque)
		ix.imply(dir)
	case strings.HasPrefix(hidden, whiteout):
		// What else union file systems write for themselves.
	case hidden == "" || hidden == "." || hidden == "..":
		return errors.New("a whiteout of nothing")
	default:
		ix.put(path.Join(dir, hidden), 0, markWhiteout)
		ix.imply(dir)
	}
	return nil
}

// imply makes directories of the parents of an entry that have none of their own.
func (ix *index) imply(dir string) {
	for dir != "" {
		if ix.mark(dir)&kindMask != 0 {
			return
		}
		ix.put(dir, 0, kindDir)
		dir = parent(dir)
	}
}

func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

func (ix *index) link(name, target string) error {
	if len(target) > maxName || target == "" {
		return fmt.Errorf("a link to a name of %d bytes", len(target))
	}
	if ix.room.linkBytes -= len(name) + len(target); ix.room.linkBytes < 0 {
		return fmt.Errorf("%w: links of more than %d bytes", ErrBounds, maxLinkBytes)
	}
	ix.links[strings.Clone(name)] = strings.Clone(target)
	return nil
}

func kindOf(flag byte) byte {
	switch flag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return kindFile
	case tar.TypeDir:
		return kindDir
	case tar.TypeSymlink:
		return kindSymlink
	case tar.TypeLink:
		return kindHardLink
	}
	return kindOther
}
