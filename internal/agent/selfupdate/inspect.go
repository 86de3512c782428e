package selfupdate

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/host"
)

// mainPackage is by what a program is known as berth, of whatever build and machine.
const mainPackage = "github.com/berth-dev/berth/cmd/berth"

// isBerth says whether a program is berth. One that is not there is not.
func isBerth(h host.FS, p string) (bool, error) {
	if p == "" {
		return false, nil
	}
	f, err := open(h, p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the agent's program: %w", err)
	}
	defer f.Close()
	read := &reader{ReadFile: f}
	info, err := buildinfo.Read(read)
	if read.err != nil {
		return false, fmt.Errorf("look at the agent's program %s: %w", p, read.err)
	}
	return err == nil && info.Path == mainPackage, nil
}

// reader tells what can't be read from what says nothing.
type reader struct {
	host.ReadFile
	err error
}

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// open follows one link: that of a version to its copy.
func open(h host.FS, p string) (host.ReadFile, error) { return h.Open(linked(h, p)) }

// linked is where a link leads to; what is none is its own path.
func linked(h host.FS, p string) string {
	to, err := h.Readlink(p)
	if err != nil {
		return p
	}
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(p), to)
	}
	return to
}

// sameFile says whether two paths are of one file: the kernel names the one that runs
// without the links above it.
func sameFile(h host.FS, a, b string) bool {
	one, err := h.Lstat(a)
	if err != nil {
		return false
	}
	other, err := h.Lstat(b)
	return err == nil && one.Inode == other.Inode && one.Device == other.Device
}

// equal says whether two programs have the same content.
func equal(h host.FS, a, b string) (bool, error) {
	one, err := digest(h, a)
	if err != nil {
		return false, err
	}
	other, err := digest(h, b)
	return bytes.Equal(one, other), err
}

func digest(h host.FS, p string) ([]byte, error) {
	f, err := open(h, p)
	if err != nil {
		return nil, fmt.Errorf("read the agent's program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	return sum.Sum(nil), nil
}

// called is the program that a unit starts: what its definition and drop-ins say
// last (systemd.service(5), ExecStart=). "" is none.
func called(definition string, dropIns map[string]string) string {
	texts := []string{definition}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		texts = append(texts, dropIns[name])
	}
	out := ""
	for _, text := range texts {
		all, err := systemdunit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			return ""
		}
		for _, o := range all {
			if o.Section == "Service" && o.Name == "ExecStart" {
				word, _, _ := strings.Cut(strings.TrimLeft(o.Value, "@-:+!"), " ")
				out = strings.Trim(word, `"'`)
			}
		}
	}
	return out
}
