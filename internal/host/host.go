// Package host is the only package that touches the machine. Host is the whole
// of what the engine may do to it; each method that changes something is one
// effect, small enough that a fault can be placed before and after it.
//
// Implementations: the real machine (package machine), a model in memory
// (package memory), and decorators that record and inject faults (package
// effect). One conformance suite, hosttest.Run, holds for all of them.
package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Host is a machine.
type Host interface {
	FS
	Systemd
	Runner
	Mounter
	PacketFilter
	Clock
	Locker
	Watcher
}

// Locker keeps writers apart.
type Locker interface {
	// Lock takes an OFD write lock on a file (made 0600 if absent, parents must
	// exist), writes holder into it and returns what gives it back. While another
	// holds it, Lock waits until ctx ends; then the error is a *LockedError.
	Lock(ctx context.Context, path, holder string) (unlock func() error, err error)
}

// LockedError is a lock that another still holds.
type LockedError struct {
	Path   string
	Holder string
}

// Error names the holder.
func (e *LockedError) Error() string { return e.Path + " is held by " + e.Holder }

// Clock tells the time of the machine.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the error of ctx as soon as that ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// FS is the file tree. Paths are absolute and clean; with a root directory they
// resolve inside it, links included. Errors are *fs.PathError and match
// fs.ErrNotExist, fs.ErrExist and syscall errors by errors.Is.
//
// The last element of a path is never followed. Parents that are links are
// followed where root owns the link and it does not lead to /proc, /sys or /dev;
// else the error is ErrUnsafeParent.
type FS interface {
	// Lstat describes a path.
	Lstat(path string) (Info, error)
	// ReadFile reads a whole regular file (or pseudo-file). One of more than MaxFile
	// bytes is EFBIG, and none of it is held.
	ReadFile(path string) ([]byte, error)
	// ReadDir lists names in order.
	ReadDir(path string) ([]string, error)
	// Readlink returns a link's target.
	Readlink(path string) (string, error)
	// Open opens a regular file for reading.
	Open(path string) (ReadFile, error)

	// Create makes a new regular file, mode 0600 and owned by the caller; it
	// fails with fs.ErrExist if the name is taken.
	Create(path string) (File, error)
	// Mkdir makes one directory; the mode is not masked.
	Mkdir(path string, mode fs.FileMode) error
	// Symlink makes a link.
	Symlink(target, path string) error
	// Link gives what oldpath names a second name (link(2)): content and
	// attributes are one. It fails with fs.ErrExist if newpath is taken, with EPERM
	// for a directory and with EXDEV across file systems.
	Link(oldpath, newpath string) error
	// Rename replaces newpath atomically. Where both are names of one file it does
	// nothing, and both stay (rename(2)).
	Rename(oldpath, newpath string) error
	// Remove removes a file, a link or an empty directory.
	Remove(path string) error
	// Chmod and Chown change a path in place, without following a link.
	Chmod(path string, mode fs.FileMode) error
	Chown(path string, uid, gid int) error
	// Xattrs are the extended attributes of a path, without following a link. A
	// file system that has none is no error.
	Xattrs(path string) (map[string][]byte, error)
	// SetXattr sets one, without following a link. A write and a chown after it
	// take security.capability away again.
	SetXattr(path, name string, value []byte) error
	// SyncDir makes a directory's names and attributes durable.
	SyncDir(path string) error
	// SyncFile makes content and attributes of a regular file durable: those that
	// Chmod, Chown and SetXattr changed in place.
	SyncFile(path string) error
	// WriteValue writes a pseudo-file in one write: under /proc or /sys,
	// /dev/kmsg or /dev/console.
	WriteValue(path string, value []byte) error
}

// File is a file being written. Nothing is durable before Sync.
type File interface {
	Write(p []byte) (int, error)
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
	// SetXattr sets an extended attribute. A write and a chown after it take
	// security.capability away again.
	SetXattr(name string, value []byte) error
	Sync() error
	Close() error
}

// MaxFile bounds what ReadFile holds, in bytes: somebody may have put anything at a
// name. Larger files are read by Open.
const MaxFile = 32 << 20

// ReadFile is a file being read.
type ReadFile interface {
	Read(p []byte) (int, error)
	ReadAt(p []byte, off int64) (int, error)
	Close() error
}

// Appender is what else a host can do for a log: Append opens a file for adding
// at its end, made 0600 if absent. It is no effect that a plan is made of, and
// not durable. Every implementation is one.
type Appender interface {
	Append(path string) (io.WriteCloser, error)
}

// Describer is what else a host can do for many names: Describe is Lstat of several
// names of one directory, which is resolved once. A name that is absent is nil, and so
// are all where there is no such directory. Every implementation is one.
type Describer interface {
	Describe(dir string, names []string) ([]*Info, error)
}

// Info describes a path.
type Info struct {
	// Mode holds type and permission bits as in package fs.
	Mode     fs.FileMode
	UID, GID int
	Size     int64
	// Links is how many names a file has; of a directory it says nothing.
	Links uint64
	// Device is the file system: only within one can a file be linked or renamed.
	Device uint64
	// Inode and ChangeTime change whenever the path's file, its content or its
	// attributes do.
	Inode      uint64
	ModTime    time.Time
	ChangeTime time.Time
	// Immutable: nobody can change or replace what is there, not even root, until
	// the attribute is taken away (chattr(1), i or a).
	Immutable bool
	// MountPoint: something is mounted here, so that nobody can rename or remove it. Linux
	// says so from 5.8 on; before it is false.
	MountPoint bool
}

// IsRegular says whether the path is a regular file.
func (i Info) IsRegular() bool { return i.Mode.IsRegular() }

// Coarse is more than a file system's times lag behind the clock.
const Coarse = 50 * time.Millisecond

// Settled says whether a later change would show in ChangeTime: one that follows
// another within the same tick does not.
func (i Info) Settled(now time.Time) bool { return now.Sub(i.ChangeTime) > Coarse }

// Unchanged says whether a path still has the file, content and attributes that
// it had when a description was made that was settled.
func (i Info) Unchanged(since Info) bool {
	return i.Inode == since.Inode && i.Device == since.Device && i.Size == since.Size && i.ChangeTime.Equal(since.ChangeTime)
}

// ErrOldKernel is a kernel without openat2(2), by which all paths are found: it came with
// Linux 5.6. Filters of system calls may keep it from a program, too.
var ErrOldKernel = errors.New("the kernel does not have, or does not allow, openat2(2): berth needs Linux 5.6 or newer")

// ErrUnsafeParent is the error for a path through a link that root does not own
// or that leads into /proc, /sys or /dev.
var ErrUnsafeParent = errors.New("a parent is a link that berth does not follow")

// Runner runs programs of the machine.
type Runner interface {
	// Run runs a command to its end. An exit code other than 0 is a *ExitError. A
	// machine bounds what ctx does not, here as with jobs.
	Run(ctx context.Context, c Command) (Output, error)
}

// Command is a program with its arguments; no shell is involved. The
// environment is exactly Env plus a fixed PATH.
type Command struct {
	Path  string
	Args  []string
	Env   []string
	Stdin []byte
	// Keep is how much of the end of each output stream is kept, in bytes; 0 is MaxOutput.
	Keep int
}

// Output is the end of what a command printed, of each stream as much as Command.Keep says.
type Output struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// ExitError is a command that ended with a code other than 0.
type ExitError struct {
	Command Command
	Output  Output
}
