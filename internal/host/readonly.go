package host

import (
	"context"
	"fmt"
	"io/fs"
)

// ErrReadOnly is the answer of a ReadOnly host to what would change it.
var ErrReadOnly = fmt.Errorf("this command changes nothing: %w", fs.ErrPermission)

// ReadOnly is a host that refuses each effect but Run, whose callers answer for the
// programs that they start. It takes no lock.
type ReadOnly struct{ Host }

// Describe implements Describer.
func (r ReadOnly) Describe(dir string, names []string) ([]*Info, error) {
	return r.Host.(Describer).Describe(dir, names)
}

// Create implements FS.
func (ReadOnly) Create(string) (File, error) { return nil, ErrReadOnly }

// Mkdir implements FS.
func (ReadOnly) Mkdir(string, fs.FileMode) error { return ErrReadOnly }

// Symlink implements FS.
func (ReadOnly) Symlink(string, string) error { return ErrReadOnly }

// Link implements FS.
func (ReadOnly) Link(string, string) error { return ErrReadOnly }

// Rename implements FS.
func (ReadOnly) Rename(string, string) error { return ErrReadOnly }

// Remove implements FS.
func (ReadOnly) Remove(string) error { return ErrReadOnly }

// Chmod implements FS.
func (ReadOnly) Chmod(string, fs.FileMode) error { return ErrReadOnly }

// Chown implements FS.
func (ReadOnly) Chown(string, int, int) error { return ErrReadOnly }

// SetXattr implements FS.
func (ReadOnly) SetXattr(string, string, []byte) error { return ErrReadOnly }

// SyncDir implements FS.
func (ReadOnly) SyncDir(string) error { return ErrReadOnly }

// SyncFile implements FS.
func (ReadOnly) SyncFile(string) error { return ErrReadOnly }

// WriteValue implements FS.
func (ReadOnly) WriteValue(string, []byte) error { return ErrReadOnly }

// DaemonReload implements Systemd.
func (ReadOnly) DaemonReload(context.Context) error { return ErrReadOnly }

// ExpectJobs implements Systemd: no job follows.
func (ReadOnly) ExpectJobs(context.Context) {}

// StartUnit implements Systemd.
func (ReadOnly) StartUnit(context.Context, string, ...string) error { return ErrReadOnly }

// Enqueue implements Systemd.
func (ReadOnly) Enqueue(context.Context, string, string) error { return ErrReadOnly }

// StopUnit implements Systemd.
func (ReadOnly) StopUnit(context.Context, string) error { return ErrReadOnly }

// RestartUnit implements Systemd.
func (ReadOnly) RestartUnit(context.Context, string) error { return ErrReadOnly }

// ReloadUnit implements Systemd.
func (ReadOnly) ReloadUnit(context.Context, string) error { return ErrReadOnly }

// ResetFailed implements Systemd.
func (ReadOnly) ResetFailed(context.Context, string) error { return ErrReadOnly }

// Mount implements Mounter.
func (ReadOnly) Mount(context.Context, Mount) error { return ErrReadOnly }

// Unmount implements Mounter.
func (ReadOnly) Unmount(context.Context, string) error { return ErrReadOnly }

// ReplaceFilterTable implements PacketFilter.
func (ReadOnly) ReplaceFilterTable(context.Context, FilterTable) error { return ErrReadOnly }

// DeleteFilterTable implements PacketFilter.
func (ReadOnly) DeleteFilterTable(context.Context, string) error { return ErrReadOnly }

// Lock implements Locker.
func (ReadOnly) Lock(context.Context, string, string) (func() error, error) { return nil, ErrReadOnly }
