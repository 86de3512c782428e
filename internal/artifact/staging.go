package artifact

import (
	"errors"
	"io"
	"io/fs"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// staging is the set of files that one pass has prepared.
type staging struct {
	h    host.FS
	done []string
}

// put writes a file durably under its temporary name. An error of the machine,
// not of the content, is a *hostError.
func (s *staging) put(f desired.ArtifactFile, content io.Reader) error {
	from := &watched{Reader: content}
	err := host.PrepareFunc(s.h, f.Path, host.Attributes{Mode: f.Mode.Perm()}, func(to host.File) error {
		_, err := io.CopyBuffer(writer{to}, from, make([]byte, 256<<10))
		return err
	})
	if err != nil && from.err == nil {
		return &hostError{err}
	}
	if err == nil {
		s.done = append(s.done, f.Path)
	}
	return err
}

// remove takes away what put made.
func (s *staging) remove() error {
	var errs []error
	for _, p := range s.done {
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
