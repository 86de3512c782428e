package machine

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// writeBack is how much is written before the kernel is told to begin with it.
const writeBack = 8 << 20

// writing is a file being written. The kernel by itself keeps new data in memory
// for half a minute, so that all of a large file would go to the disk in Sync,
// while nothing else happens. Here each piece begins its way as soon as it is
// whole, and Sync waits for the last ones only.
//
// It has the methods of host.File and no other: one that os.File has for copying
// would write past Write.
type writing struct {
	f *os.File
	// written is how long the file is, begun how much of it is on its way.
	written, begun int64
}

// Write implements host.File.
func (w *writing) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.written += int64(n)
	if w.written-w.begun >= writeBack {
		w.begin()
	}
	return n, err
}

// begin starts the write-back of what is not on its way. It is best effort: a file
// system that does not know it answers with an error, and Sync does the work.
func (w *writing) begin() {
	conn, err := w.f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.SyncFileRange(int(fd), w.begun, w.written-w.begun, unix.SYNC_FILE_RANGE_WRITE)
	})
	w.begun = w.written
}

// Chmod implements host.File.
func (w *writing) Chmod(mode fs.FileMode) error { return w.f.Chmod(mode) }

// Chown implements host.File.
func (w *writing) Chown(uid, gid int) error { return w.f.Chown(uid, gid) }

// SetXattr implements host.File.
func (w *writing) SetXattr(name string, value []byte) error {
	conn, err := w.f.SyscallConn()
	if err != nil {
		return err
	}
	if conn.Control(func(fd uintptr) { err = unix.Fsetxattr(int(fd), name, value, 0) }) != nil {
		err = os.ErrClosed
	}
	if err != nil {
		return &fs.PathError{Op: "setxattr", Path: w.f.Name(), Err: err}
	}
	return nil
}

// Sync implements host.File.
func (w *writing) Sync() error { return w.f.Sync() }

// Close implements host.File.
func (w *writing) Close() error { return w.f.Close() }
