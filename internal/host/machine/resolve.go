package machine

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// maxLinks is the kernel's limit on links in one resolution (path_resolution(7)).
const maxLinks = 40

// tree is the file tree below a directory.
type tree struct {
	root int
	live bool
}

func pathError(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// at runs do with the parent directory of a path and the path's last element,
// which do must not follow; its error gets operation and path.
func (t tree) at(op, p string, do func(dir int, name string) error) error {
	err := t.inParent(p, do)
	if err != nil {
		return pathError(op, p, err)
	}
	return nil
}

func (t tree) inParent(p string, do func(dir int, name string) error) error {
	if err := host.CheckPath(p); err != nil {
		return err
	}
	if p == "/" {
		return do(t.root, ".")
	}
	dir, err := t.parent(path.Dir(p))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return do(dir, path.Base(p))
}

// parent opens a directory. Links on the way are the exception: the kernel is
// first asked for a path without any, and only then are they looked at one by
// one. What is opened in the end is again a path without links.
func (t tree) parent(dir string) (int, error) {
	for range maxLinks {
		fd, err := t.open(dir, unix.O_PATH|unix.O_DIRECTORY)
		if !errors.Is(err, unix.ELOOP) {
			return fd, err
		}
		if dir, err = t.replaceLink(dir); err != nil {
			return -1, err
		}
	}
	return -1, unix.ELOOP
}

// open opens a path without links inside the root.
func (t tree) open(p string, flags uint64) (int, error) {
	rel := strings.TrimPrefix(p, "/")
	if rel == "" {
		rel = "."
	}
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(t.root, rel, &how)
		if errors.Is(err, unix.ENOSYS) {
			return -1, host.ErrOldKernel
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// replaceLink returns the path with its first link replaced by its target.
func (t tree) replaceLink(p string) (string, error) {
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		target, err := t.link(p[:i])
		if err != nil {
			return "", err
		}
		if target == "" {
			continue
		}
		next := host.Splice(path.Dir(p[:i]), target, strings.TrimPrefix(p[i:], "/"))
		if host.LeadsAstray(p, next) {
			return "", host.ErrUnsafeParent
		}
		return next, nil
	}
	return p, nil // the link is gone meanwhile
}

// link reads the target of a link that root owns; of anything else it is empty.
func (t tree) link(p string) (string, error) {
	fd, err := t.open(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFLNK:
		return "", nil
	case st.Uid != 0:
		return "", host.ErrUnsafeParent
	}
	return readlinkat(fd, "")
}

func readlinkat(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
