package effect

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-dev/berth/internal/host"
)

// file is a file being written through a decorated host.
type file struct {
	d    *decorated
	path string
	host.File
}

// Write implements host.File.
func (f *file) Write(p []byte) (int, error) {
	n := 0
	err := f.d.do("write", f.path, fmt.Sprintf("%d bytes", len(p)), func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	if fault := (*injected)(nil); errors.As(err, &fault) {
		n, _ = f.File.Write(p[:len(p)/2])
	}
	return n, err
}

// Chmod implements host.File.
func (f *file) Chmod(mode fs.FileMode) error {
	return f.d.do("chmod", f.path, mode.String(), func() error { return f.File.Chmod(mode) })
}

// Chown implements host.File.
func (f *file) Chown(uid, gid int) error {
	return f.d.do("chown", f.path, owner(uid, gid), func() error { return f.File.Chown(uid, gid) })
}

// SetXattr implements host.File.
func (f *file) SetXattr(name string, value []byte) error {
	return f.d.do("xattr", f.path, name, func() error { return f.File.SetXattr(name, value) })
}

// Sync implements host.File.
func (f *file) Sync() error {
	return f.d.do("sync", f.path, "", f.File.Sync)
}
