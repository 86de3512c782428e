package machine

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// Lstat implements host.FS.
func (t tree) Lstat(p string) (info host.Info, err error) {
	err = t.at("lstat", p, func(dir int, name string) error {
		var st unix.Statx_t
		if err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st); err != nil {
			return err
		}
		info = describe(&st)
		return nil
	})
	return info, err
}

// Describe implements host.Describer.
func (t tree) Describe(dir string, names []string) ([]*host.Info, error) {
	out := make([]*host.Info, len(names))
	err := t.at("lstat", path.Join(dir, "x"), func(fd int, _ string) error {
		for i, name := range names {
			var st unix.Statx_t
			err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return err
			}
			info := describe(&st)
			out[i] = &info
		}
		return nil
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		err = nil
	}
	return out, err
}

func describe(st *unix.Statx_t) host.Info {
	return host.Info{
		Mode:       mode(uint32(st.Mode)),
		UID:        int(st.Uid),
		GID:        int(st.Gid),
		Size:       int64(st.Size),
		Links:      uint64(st.Nlink),
		Device:     unix.Mkdev(st.Dev_major, st.Dev_minor),
		Inode:      st.Ino,
		ModTime:    moment(st.Mtime),
		ChangeTime: moment(st.Ctime),
		Immutable:  st.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0,
		MountPoint: st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}
}

func moment(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// modeBits are the kernel's bits and those of package fs.
var modeBits = []struct {
	mask, value uint32
	bit         fs.FileMode
}{
	{unix.S_IFMT, unix.S_IFDIR, fs.ModeDir},
	{unix.S_IFMT, unix.S_IFLNK, fs.ModeSymlink},
	{unix.S_IFMT, unix.S_IFIFO, fs.ModeNamedPipe},
	{unix.S_IFMT, unix.S_IFSOCK, fs.ModeSocket},
	{unix.S_IFMT, unix.S_IFBLK, fs.ModeDevice},
	{unix.S_IFMT, unix.S_IFCHR, fs.ModeDevice | fs.ModeCharDevice},
	{unix.S_ISUID, unix.S_ISUID, fs.ModeSetuid},
	{unix.S_ISGID, unix.S_ISGID, fs.ModeSetgid},
	{unix.S_ISVTX, unix.S_ISVTX, fs.ModeSticky},
}

func mode(m uint32) fs.FileMode {
	out := fs.FileMode(m & 0o777)
	for _, b := range modeBits {
		if m&b.mask == b.value {
			out |= b.bit
		}
	}
	return out
}

// kernelMode is the permission part of a mode as the kernel wants it.
func kernelMode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for _, b := range modeBits {
		if b.mask != unix.S_IFMT && m&b.bit != 0 {
			out |= b.value
		}
	}
	return out
}

// openRegular opens a regular file for reading. O_NONBLOCK: what turns out to be
// a pipe must not keep us.
func (t tree) openRegular(p string) (f *os.File, err error) {
	err = t.regularAt(p, func(fd int, _ int64) error {
		f = os.NewFile(uintptr(fd), p)
		return nil
	})
	return f, err
}

// regularAt opens a regular file for reading and passes it on with its size; the
// descriptor is closed only where that does not come about. A path without links,
// as nearly all are, is opened in one call.
func (t tree) regularAt(p string, do func(fd int, size int64) error) error {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK
	err := host.CheckPath(p)
	if err != nil {
		return pathError("open", p, err)
	}
	fd, err := t.open(p, flags)
	if errors.Is(err, unix.ELOOP) {
		err = t.inParent(p, func(dir int, name string) error {
			fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
			return err
		})
	}
	if err != nil {
		return pathError("open", p, err)
	}
	size, err := regular(fd)
	if err != nil {
		_ = unix.Close(fd)
		return pathError("open", p, err)
	}
	return do(fd, size)
}

// regular is the size of a regular file, an error for anything else.
func regular(fd int) (size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return st.Size, nil
	case unix.S_IFDIR:
		return 0, unix.EISDIR
	}
	return 0, unix.EINVAL
}

// ReadFile implements host.FS.
func (t tree) ReadFile(p string) ([]byte, error) {
	var data []byte
	err := t.regularAt(p, func(fd int, size int64) (err error) {
		defer unix.Close(fd)
		if data, err = readAll(fd, size); err != nil {
			return pathError("read", p, err)
		}
		return nil
	})
	return data, err
}

// readAll reads to the end. The size is a hint: the kernel's own files have none.
func readAll(fd int, size int64) ([]byte, error) {
	if size > host.MaxFile {
		return nil, unix.EFBIG
	}
	data := make([]byte, 0, min(max(size, minRead), maxHint)+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		}
		if data = data[:len(data)+n]; len(data) > host.MaxFile {
			return nil, unix.EFBIG
		}
		if size > 0 && int64(len(data)) == size && len(data) < cap(data) {
			return data, nil // a read that was not filled ended at the end
		}
	}
}

// What is read at once before the size proves true, in bytes.
const (
	minRead = 511
	maxHint = 1 << 20
)

// Open implements host.FS.
func (t tree) Open(p string) (host.ReadFile, error) {
	f, err := t.openRegular(p)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadDir implements host.FS.
func (t tree) ReadDir(p string) (names []string, err error) {
	err = t.at("open", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), p)
		defer f.Close()
		names, err = f.Readdirnames(-1)
		return err
	})
	slices.Sort(names)
	return names, err
}

// Readlink implements host.FS.
func (t tree) Readlink(p string) (target string, err error) {
	err = t.at("readlink", p, func(dir int, name string) error {
		target, err = readlinkat(dir, name)
		return err
	})
	return target, err
}
