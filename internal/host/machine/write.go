package machine

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// Create implements host.FS.
func (t tree) Create(p string) (host.File, error) {
	var f *os.File
	err := t.at("open", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &writing{f: f}, nil
}

// Append implements host.Appender.
func (t tree) Append(p string) (w io.WriteCloser, err error) {
	err = t.at("open", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if _, err := regular(fd); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		w = os.NewFile(uintptr(fd), p)
		return nil
	})
	return w, err
}

// Mkdir implements host.FS. The second call is made only where the umask took
// something: the modes that berth uses pass an ordinary umask in one.
func (t tree) Mkdir(p string, mode fs.FileMode) error {
	want := kernelMode(mode)
	return t.at("mkdir", p, func(dir int, name string) error {
		if err := unix.Mkdirat(dir, name, want); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&0o7777 == want {
			return err
		}
		return chmodat(dir, name, want)
	})
}

// Symlink implements host.FS.
func (t tree) Symlink(target, p string) error {
	return t.at("symlink", p, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
}

// Link implements host.FS.
func (t tree) Link(oldpath, newpath string) error {
	return t.at("link", newpath, func(to int, newname string) error {
		return t.inParent(oldpath, func(from int, oldname string) error {
			return unix.Linkat(from, oldname, to, newname, 0)
		})
	})
}

// Rename implements host.FS.
func (t tree) Rename(oldpath, newpath string) error {
	return t.at("rename", newpath, func(to int, newname string) error {
		return t.inParent(oldpath, func(from int, oldname string) error {
			return unix.Renameat(from, oldname, to, newname)
		})
	})
}

// Remove implements host.FS.
func (t tree) Remove(p string) error {
	return t.at("remove", p, func(dir int, name string) error {
		err := unix.Unlinkat(dir, name, 0)
		if errors.Is(err, unix.EISDIR) {
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// Chmod implements host.FS.
func (t tree) Chmod(p string, mode fs.FileMode) error {
	return t.at("chmod", p, func(dir int, name string) error { return chmodat(dir, name, kernelMode(mode)) })
}

// chmodat changes a mode without following a link. fchmodat(2) can do that since
// Linux 6.6 only.
func chmodat(dir int, name string, mode uint32) error {
	return byHandle(dir, name, func(p string) error {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return unix.EOPNOTSUPP
		}
		return unix.Chmod(p, mode)
	})
}

// Chown implements host.FS.
func (t tree) Chown(p string, uid, gid int) error {
	return t.at("chown", p, func(dir int, name string) error {
		return unix.Fchownat(dir, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// SyncDir implements host.FS.
func (t tree) SyncDir(p string) error {
	return t.at("sync", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Fsync(fd)
	})
}

// SyncFile implements host.FS.
func (t tree) SyncFile(p string) error {
	f, err := t.openRegular(p)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteValue implements host.FS.
func (t tree) WriteValue(p string, value []byte) error {
	return t.at("write", p, func(dir int, name string) error {
		switch {
		case !host.IsValue(p):
			return unix.EINVAL
		case !t.live:
			return host.ErrOtherRoot
		}
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return writeOnce(fd, value)
	})
}

// writeOnce writes in one system call: to the kernel each one is a value.
func writeOnce(fd int, value []byte) error {
	n, err := unix.Write(fd, value)
	if err == nil && n < len(value) {
		return unix.EIO
	}
	return err
}
