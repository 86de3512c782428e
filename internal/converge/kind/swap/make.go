package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Stage prepares a swap file durably under the temporary name of its path. A
// leftover of an earlier run is replaced, and on an error none is left.
func Stage(ctx context.Context, h host.Host, p string, size int64) error {
	tmp := host.TempName(p)
	err := stage(ctx, h, tmp, header(p, size, os.Getpagesize()), size)
	if err == nil {
		return nil
	}
	if left := h.Remove(tmp); left != nil && !errors.Is(left, fs.ErrNotExist) {
		err = fmt.Errorf("%v; and then: %w", err, left) //nolint:errorlint // what is left counts: nobody may go on beside it
	}
	return &Error{Path: p, Doing: "make", Err: err}
}

func stage(ctx context.Context, h host.Host, tmp string, first []byte, size int64) error {
	if err := h.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove leftover: %w", err)
	}
	f, err := h.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(first)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := allocate(ctx, h, tmp, size); err != nil {
		return err
	}
	return h.SyncFile(tmp)
}

// ErrNoRoom is a disk without room for a swap file. It is no full disk: that the machine
// may well be without the file.
var ErrNoRoom = errors.New("the disk has no room for it")

// allocate gives a file its size. A swap file may have no holes: the kernel writes
// to its blocks and asks no file system for more.
func allocate(ctx context.Context, h host.Runner, p string, size int64) error {
	_, err := h.Run(ctx, host.Command{Path: "fallocate", Args: []string{"--length", strconv.FormatInt(size, 10), "--", p}})
	if exit, ok := errors.AsType[*host.ExitError](err); ok && bytes.Contains(bytes.ToLower(exit.Output.Stderr), []byte(syscall.ENOSPC.Error())) {
		return fmt.Errorf("allocate %d bytes: %w", size, ErrNoRoom)
	}
	return err
}

// look says what is at a path: whether there is anything, and of what kind.
func look(h host.FS, p string, info *host.Info) (a area, isArea bool, err error) {
	if info == nil || !info.IsRegular() {
		return area{}, false, nil
	}
	f, err := h.Open(p)
	if err != nil {
		return area{}, false, err
	}
	first := make([]byte, os.Getpagesize())
	n, err := f.ReadAt(first, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return area{}, false, err
	}
	a, isArea = readHeader(first[:n], len(first))
	return a, isArea, nil
}

// Restore makes a swap file where it is missing, or berth's and of another size. It is
// for the time before anything uses it. Only what makes a file takes the lock of those
// who change the machine: one of them may be waiting for the end of this.
func Restore(ctx context.Context, h host.Host, s *desired.Swap) error {
	if done, err := standing(h, s); done || err != nil {
		return err
	}
	if _, err := host.MkdirAll(h, paths.RunDir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	unlock, err := h.Lock(ctx, ledger.LockPath, "berth node swap")
	if err != nil {
		return err
	}
	return errors.Join(restore(ctx, h, s), unlock())
}

// lockTimeout bounds the wait for another run.
const lockTimeout = time.Minute

func restore(ctx context.Context, h host.Host, s *desired.Swap) error {
	if done, err := standing(h, s); done || err != nil {
		return err
	}
	if err := Stage(ctx, h, s.Path, s.Bytes); err != nil {
		return err
	}
	if err := h.Rename(host.TempName(s.Path), s.Path); err != nil {
		return err
	}
	return h.SyncDir(path.Dir(s.Path))
}

// standing says whether a swap file is there as it is wanted. What is not berth's is an
// error.
func standing(h host.FS, s *desired.Swap) (bool, error) {
	info, err := ledger.Lstat(h, s.Path)
	if err != nil {
		return false, err
	}
	a, isArea, err := look(h, s.Path, info)
	switch {
	case err != nil:
		return false, err
	case isArea && a.fits(s.Bytes, info):
		return true, nil
	case info != nil && (!isArea || !a.ours):
		return false, &Error{Path: s.Path, Doing: "make", Err: ErrTaken}
	}
	return false, nil
}

// fits says whether an area is one of a size, in a file of that size.
func (a area) fits(size int64, info *host.Info) bool {
	return a.pages == size/int64(os.Getpagesize()) && info.Size == size
}

// Error is a swap file that is not to be had.
type Error struct {
	Path, Doing string
	Err         error
}

// Error names the file.
func (e *Error) Error() string { return fmt.Sprintf("%s swap file %s: %v", e.Doing, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
