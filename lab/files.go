package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ReadFile reads a file of the node, running or not.
func (n *Node) ReadFile(path string) ([]byte, error) {
	f, err := n.spec.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read in %s: %w", n.Name, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile replaces a file's content, or creates the file with mode; its
// directory must exist.
func (n *Node) WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := n.spec.Open(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("write in %s: %w", n.Name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(content)
	return err
}

// Exists reports whether a path is there, following links.
func (n *Node) Exists(path string) bool {
	_, err := n.Stat(path)
	return err == nil
}

// Stat describes a file of the node, following links.
func (n *Node) Stat(path string) (fs.FileInfo, error) {
	f, err := n.spec.Open(path, oPath, 0)
	if err != nil {
		return nil, fmt.Errorf("stat in %s: %w", n.Name, err)
	}
	defer f.Close()
	return f.Stat()
}

// oPath is O_PATH, which package syscall does not have.
const oPath = 0x200000

// Entry is one item of a Tree.
type Entry struct {
	Mode     fs.FileMode
	UID, GID uint32
	Size     int64
	SHA256   string // of a regular file's content, hexadecimal
	Link     string // a symbolic link's target
}

// Tree describes everything below the given directories of the node, links not
// followed. What vanishes meanwhile is left out. Paths for which skip returns
// true are left out with all that is below; skip may be nil.
func (n *Node) Tree(skip func(path string) bool, dirs ...string) (map[string]Entry, error) {
	tree := map[string]Entry{}
	for _, dir := range dirs {
		root, rel := n.spec.Locate(dir)
		base := strings.TrimSuffix(dir, rel) // "" unless the directory is a bind of its own
		err := filepath.WalkDir(root+rel, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return ignoreGone(err)
			}
			path := base + strings.TrimPrefix(p, root)
			if skip != nil && skip(path) {
				return skipped(d)
			}
			e, err := describe(p, d)
			if err == nil {
				tree[path] = e
			}
			return ignoreGone(err)
		})
		if err != nil {
			return nil, fmt.Errorf("walk %s in %s: %w", dir, n.Name, err)
		}
	}
	return tree, nil
}

func skipped(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func describe(path string, d fs.DirEntry) (Entry, error) {
	info, err := d.Info()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = st.Uid, st.Gid
	}
	switch {
	case info.Mode().IsRegular():
		e.Size = info.Size()
		e.SHA256, err = hash(path, info)
	case info.Mode()&fs.ModeSymlink != 0:
		e.Link, err = os.Readlink(path)
	}
	return e, err
}

// hashed are digests of files that did not change since: nodes have most of theirs from the
// same layers, and a test looks at a node more than once.
var hashed sync.Map // fileState → string

// fileState is what the kernel changes with a file's content. The device is that of the
// node's own overlay, also for a file of a layer.
type fileState struct {
	ino          uint64
	size         int64
	mtime, ctime syscall.Timespec
}

func hash(path string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return hashFile(path)
	}
	state := fileState{st.Ino, st.Size, st.Mtim, st.Ctim}
	if sum, ok := hashed.Load(state); ok {
		return sum.(string), nil
	}
	sum, err := hashFile(path)
	if err == nil && time.Since(time.Unix(st.Ctim.Unix())) > time.Second { // a later change shows
		hashed.Store(state, sum)
	}
	return sum, err
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
