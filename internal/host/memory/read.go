package memory

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/host"
)

// look runs a reading under the lock and names path and operation in its error.
func look[T any](h *Host, op, p string, read func(*inode) (T, error)) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out T
	n, err := h.find(p)
	if err == nil {
		out, err = read(n)
	}
	if err != nil {
		return out, pathError(op, p, err)
	}
	return out, nil
}

// Lstat implements host.FS.
func (h *Host) Lstat(p string) (host.Info, error) {
	return look(h, "lstat", p, func(n *inode) (host.Info, error) {
		info := n.info()
		info.MountPoint = n == h.root || h.isMountRoot(n)
		return info, nil
	})
}

// Describe implements host.Describer.
func (h *Host) Describe(dir string, names []string) ([]*host.Info, error) {
	out := make([]*host.Info, len(names))
	for i, name := range names {
		info, err := h.Lstat(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i] = &info
	}
	return out, nil
}

// ReadFile implements host.FS.
func (h *Host) ReadFile(p string) ([]byte, error) {
	return look(h, "open", p, func(n *inode) ([]byte, error) {
		if len(n.content) > host.MaxFile {
			return nil, syscall.EFBIG
		}
		return slices.Clone(n.content), regular(n)
	})
}

// ReadDir implements host.FS.
func (h *Host) ReadDir(p string) ([]string, error) {
	return look(h, "open", p, func(n *inode) ([]string, error) {
		if !n.mode.IsDir() {
			return nil, syscall.ENOTDIR
		}
		return sortedKeys(n.children), nil
	})
}

// Readlink implements host.FS.
func (h *Host) Readlink(p string) (string, error) {
	return look(h, "readlink", p, func(n *inode) (string, error) {
		if !n.isLink() {
			return "", syscall.EINVAL
		}
		return n.target, nil
	})
}

// Open implements host.FS. The reader sees the content as it is now.
func (h *Host) Open(p string) (host.ReadFile, error) {
	return look(h, "open", p, func(n *inode) (host.ReadFile, error) {
		return reader{bytes.NewReader(slices.Clone(n.content))}, regular(n)
	})
}

type reader struct{ *bytes.Reader }

// Close implements host.ReadFile.
func (reader) Close() error { return nil }

// regular is the error of reading what is not a regular file; a link is not
// followed (open(2), O_NOFOLLOW).
func regular(n *inode) error {
	switch {
	case n.mode.IsRegular():
		return nil
	case n.isLink():
		return syscall.ELOOP
	case n.mode.IsDir():
		return syscall.EISDIR
	}
	return syscall.EINVAL
}
