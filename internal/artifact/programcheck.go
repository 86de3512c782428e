package artifact

import (
	"errors"
	"io"

	"github.com/berth-dev/berth/internal/artifact/program"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// checkPrograms looks at what was staged before anything can run it: programs are for
// this architecture, and of the version that was asked for where they tell it.
func (f *Fetcher) checkPrograms(h host.FS, a *desired.Artifact, url string) error {
	for _, file := range a.Files {
		if file.Mode.Perm()&0o111 == 0 {
			continue
		}
		first, err := head(h, host.TempName(file.Path))
		if err != nil {
			return &hostError{err}
		}
		if got, foreign := program.Foreign(first, f.opt.Arch); foreign {
			return &MismatchError{URL: url, What: "architecture", Got: got, Want: f.opt.Arch}
		}
	}
	if a.Version == "" {
		return nil
	}
	got, err := builtVersion(h, host.TempName(a.Files[0].Path))
	if err != nil {
		return &hostError{err}
	}
	if got != "" && got != a.Version {
		return &MismatchError{URL: url, What: "version", Got: got, Want: a.Version}
	}
	return nil
}

// head is how a file begins.
func head(h host.FS, p string) ([]byte, error) {
	file, err := h.Open(p)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	first := make([]byte, program.HeadSize)
	n, err := file.ReadAt(first, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return first[:n], err
}
