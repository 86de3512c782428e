package memory

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// file is a file being written.
type file struct {
	h       *Host
	path    string
	node    *inode
	process int
	closed  bool
}

// do runs one effect on an open file.
func (f *file) do(op string, change func(now time.Time)) error {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	switch {
	case f.closed:
		return pathError(op, f.path, os.ErrClosed)
	case f.process != f.h.process:
		return pathError(op, f.path, syscall.EBADF)
	}
	change(f.h.tick())
	return nil
}

// Write implements host.File.
func (f *file) Write(p []byte) (int, error) {
	err := f.do("write", func(now time.Time) {
		f.node.content = append(f.node.content, p...)
		f.node.mtime, f.node.ctime = now, now
		f.node.dirty, f.node.torn = true, true
		f.node.dropCapability()
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Chmod implements host.File.
func (f *file) Chmod(mode fs.FileMode) error {
	return f.do("chmod", func(now time.Time) { f.node.chmod(mode, now) })
}

// Chown implements host.File.
func (f *file) Chown(uid, gid int) error {
	return f.do("chown", func(now time.Time) { f.node.chown(uid, gid, now) })
}

// SetXattr implements host.File.
func (f *file) SetXattr(name string, value []byte) error {
	if err := mayHave(f.node, name); err != nil {
		return pathError("setxattr", f.path, err)
	}
	return f.do("setxattr", func(now time.Time) {
		f.node.setXattr(name, value)
		f.node.ctime, f.node.dirty = now, true
	})
}

// Sync implements host.File.
func (f *file) Sync() error {
	return f.do("sync", func(time.Time) { f.node.save() })
}

// Close implements host.File.
func (f *file) Close() error {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if f.closed {
		return pathError("close", f.path, os.ErrClosed)
	}
	f.closed = true
	return nil
}
