package effect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// decorated sends every effect of a host through around and every reading
// through before.
type decorated struct {
	inner  host.Host
	around around
	before before
}

func (d *decorated) do(op, target, detail string, do func() error) error {
	return d.around(Effect{Op: op, Target: target, Detail: detail}, do)
}

// read is a reading of the inner host.
func read[T any](d *decorated, get func() (T, error)) (T, error) {
	if err := d.before(); err != nil {
		var none T
		return none, err
	}
	return get()
}

// Lstat implements host.FS.
func (d *decorated) Lstat(p string) (host.Info, error) {
	return read(d, func() (host.Info, error) { return d.inner.Lstat(p) })
}

// Describe implements host.Describer.
func (d *decorated) Describe(dir string, names []string) ([]*host.Info, error) {
	return read(d, func() ([]*host.Info, error) {
		inner, ok := d.inner.(host.Describer)
		if !ok {
			return nil, &fs.PathError{Op: "lstat", Path: dir, Err: errors.ErrUnsupported}
		}
		return inner.Describe(dir, names)
	})
}

// ReadFile implements host.FS.
func (d *decorated) ReadFile(p string) ([]byte, error) {
	return read(d, func() ([]byte, error) { return d.inner.ReadFile(p) })
}

// ReadDir implements host.FS.
func (d *decorated) ReadDir(p string) ([]string, error) {
	return read(d, func() ([]string, error) { return d.inner.ReadDir(p) })
}

// Readlink implements host.FS.
func (d *decorated) Readlink(p string) (string, error) {
	return read(d, func() (string, error) { return d.inner.Readlink(p) })
}

// Open implements host.FS.
func (d *decorated) Open(p string) (host.ReadFile, error) {
	return read(d, func() (host.ReadFile, error) { return d.inner.Open(p) })
}

// Create implements host.FS.
func (d *decorated) Create(p string) (host.File, error) {
	var f host.File
	err := d.do("create", p, "", func() (err error) {
		f, err = d.inner.Create(p)
		return err
	})
	if err != nil {
		return nil, closed(f, err)
	}
	return &file{d, p, f}, nil
}

// closed gives back a file whose creation happened but must look as if not.
func closed(f host.File, err error) error {
	if f != nil {
		_ = f.Close()
	}
	return err
}

// Mkdir implements host.FS.
func (d *decorated) Mkdir(p string, mode fs.FileMode) error {
	return d.do("mkdir", p, mode.String(), func() error { return d.inner.Mkdir(p, mode) })
}

// Symlink implements host.FS.
func (d *decorated) Symlink(target, p string) error {
	return d.do("symlink", p, target, func() error { return d.inner.Symlink(target, p) })
}

// Link implements host.FS.
func (d *decorated) Link(oldpath, newpath string) error {
	return d.do("link", newpath, oldpath, func() error { return d.inner.Link(oldpath, newpath) })
}

// Rename implements host.FS.
func (d *decorated) Rename(oldpath, newpath string) error {
	return d.do("rename", newpath, oldpath, func() error { return d.inner.Rename(oldpath, newpath) })
}

// Remove implements host.FS.
func (d *decorated) Remove(p string) error {
	return d.do("remove", p, "", func() error { return d.inner.Remove(p) })
}

// Chmod implements host.FS.
func (d *decorated) Chmod(p string, mode fs.FileMode) error {
	return d.do("chmod", p, mode.String(), func() error { return d.inner.Chmod(p, mode) })
}

// Chown implements host.FS.
func (d *decorated) Chown(p string, uid, gid int) error {
	return d.do("chown", p, owner(uid, gid), func() error { return d.inner.Chown(p, uid, gid) })
}

// Xattrs implements host.FS.
func (d *decorated) Xattrs(p string) (map[string][]byte, error) {
	return read(d, func() (map[string][]byte, error) { return d.inner.Xattrs(p) })
}

// SetXattr implements host.FS.
func (d *decorated) SetXattr(p, name string, value []byte) error {
	return d.do("xattr", p, name, func() error { return d.inner.SetXattr(p, name, value) })
}

// SyncDir implements host.FS.
func (d *decorated) SyncDir(p string) error {
	return d.do("sync", p, "", func() error { return d.inner.SyncDir(p) })
}

// SyncFile implements host.FS.
func (d *decorated) SyncFile(p string) error {
	return d.do("sync", p, "", func() error { return d.inner.SyncFile(p) })
}

// WriteValue implements host.FS.
func (d *decorated) WriteValue(p string, value []byte) error {
	return d.do("value", p, strings.TrimSpace(string(value)), func() error { return d.inner.WriteValue(p, value) })
}

func owner(uid, gid int) string { return fmt.Sprintf("%d:%d", uid, gid) }

// Run implements host.Runner.
func (d *decorated) Run(ctx context.Context, c host.Command) (host.Output, error) {
	var out host.Output
	err := d.do("run", c.Path, strings.Join(c.Args, " "), func() (err error) {
		out, err = d.inner.Run(ctx, c)
		return err
	})
	return out, err
}

// Mounts implements host.Mounter.
func (d *decorated) Mounts(ctx context.Context) ([]host.Mount, error) {
	return read(d, func() ([]host.Mount, error) { return d.inner.Mounts(ctx) })
}

// Mount implements host.Mounter.
func (d *decorated) Mount(ctx context.Context, m host.Mount) error {
	return d.do("mount", m.Target, m.Type, func() error { return d.inner.Mount(ctx, m) })
}

// Unmount implements host.Mounter.
func (d *decorated) Unmount(ctx context.Context, target string) error {
	return d.do("unmount", target, "", func() error { return d.inner.Unmount(ctx, target) })
}

// FilterNames implements host.PacketFilter.
func (d *decorated) FilterNames(ctx context.Context) ([]host.FilterName, error) {
	return read(d, func() ([]host.FilterName, error) { return d.inner.FilterNames(ctx) })
}

// FilterTable implements host.PacketFilter.
func (d *decorated) FilterTable(ctx context.Context, name string) (*host.FilterTable, error) {
	return read(d, func() (*host.FilterTable, error) { return d.inner.FilterTable(ctx, name) })
}

// ReplaceFilterTable implements host.PacketFilter.
func (d *decorated) ReplaceFilterTable(ctx context.Context, t host.FilterTable) error {
	return d.do("replace-table", t.Name, "", func() error { return d.inner.ReplaceFilterTable(ctx, t) })
}

// DeleteFilterTable implements host.PacketFilter.
func (d *decorated) DeleteFilterTable(ctx context.Context, name string) error {
	return d.do("delete-table", name, "", func() error { return d.inner.DeleteFilterTable(ctx, name) })
}

// Lock implements host.Locker.
func (d *decorated) Lock(ctx context.Context, p, holder string) (func() error, error) {
	return read(d, func() (func() error, error) { return d.inner.Lock(ctx, p, holder) })
}

// Append implements host.Appender.
func (d *decorated) Append(p string) (io.WriteCloser, error) {
	return read(d, func() (io.WriteCloser, error) {
		a, ok := d.inner.(host.Appender)
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: p, Err: errors.ErrUnsupported}
		}
		return a.Append(p)
	})
}

// Now implements host.Clock.
func (d *decorated) Now() time.Time { return d.inner.Now() }

// Sleep implements host.Clock.
func (d *decorated) Sleep(ctx context.Context, t time.Duration) error {
	if err := d.before(); err != nil {
		return err
	}
	return d.inner.Sleep(ctx, t)
}

// Watch implements host.Watcher.
func (d *decorated) Watch(ctx context.Context, w host.Watched) (<-chan host.Event, error) {
	return read(d, func() (<-chan host.Event, error) { return d.inner.Watch(ctx, w) })
}
