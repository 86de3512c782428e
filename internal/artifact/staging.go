package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// syncs is how many files of one artifact are made durable at once, while the
// next ones are written.
const syncs = 4

// staging is the set of files that one pass has prepared.
type staging struct {
	h    host.FS
	done []string
	sync errgroup.Group
	// refused, if set, is called when the machine takes no more: nothing else need
	// come.
	refused func()
}

func newStaging(h host.FS) *staging {
	s := &staging{h: h}
	s.sync.SetLimit(syncs)
	return s
}

// putAll writes one content under several names.
func (s *staging) putAll(files []desired.ArtifactFile, content io.Reader) error {
	for i, f := range files {
		if i > 0 {
			first, err := s.h.Open(host.TempName(files[0].Path))
			if err != nil {
				return s.fail(err)
			}
			defer first.Close()
			content = first
		}
		if err := s.put(f, content); err != nil {
			return err
		}
	}
	return nil
}

// fail is an error of the machine.
func (s *staging) fail(err error) error {
	if s.refused != nil {
		s.refused()
	}
	return &hostError{err}
}

// put writes a file under its temporary name; it is durable after wait. An error
// of the machine, not of the content, is a *hostError.
func (s *staging) put(f desired.ArtifactFile, content io.Reader) error {
	to, err := s.create(host.TempName(f.Path))
	if err != nil {
		return s.fail(err)
	}
	s.done = append(s.done, f.Path)
	from := &watched{Reader: content}
	_, err = io.CopyBuffer(writer{to}, from, make([]byte, aheadSize))
	if from.err != nil {
		return errors.Join(from.err, to.Close())
	}
	if err == nil {
		err = errors.Join(to.Chown(0, 0), to.Chmod(f.Mode.Perm()))
	}
	if err != nil {
		return s.fail(errors.Join(err, to.Close()))
	}
	s.sync.Go(func() error {
		if err := converge.Safely(func() error { return errors.Join(to.Sync(), to.Close()) }); err != nil {
			return s.fail(err)
		}
		return nil
	})
	return nil
}

func (s *staging) create(tmp string) (host.File, error) {
	f, err := s.h.Create(tmp)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := s.h.Remove(tmp); err != nil {
		return nil, fmt.Errorf("remove leftover: %w", err)
	}
	return s.h.Create(tmp)
}

// wait returns when every file is durable.
func (s *staging) wait() error { return s.sync.Wait() }

// remove takes away what put made.
func (s *staging) remove() error {
	var errs []error
	for _, p := range slices.Compact(s.done) {
		if err := s.h.Remove(host.TempName(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &hostError{errors.Join(errs...)}
}

// writer hides ReadFrom, which would bring its own small buffer.
type writer struct{ io.Writer }

// watched remembers that reading failed; it hides WriteTo.
type watched struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// hostError is an error of the machine: another URL does not help.
type hostError struct{ err error }

// Error is the machine's own text.
func (e *hostError) Error() string { return e.err.Error() }

// Unwrap returns the machine's error.
func (e *hostError) Unwrap() error { return e.err }
