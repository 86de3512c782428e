package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Read reads the kubeconfig at a path and the files that it refers to. A CA file
// that does not exist leaves CA empty; any other missing file is an error that
// matches fs.ErrNotExist.
func Read(h host.FS, p string) (*Config, error) {
	text, err := readThrough(h, p)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	c, err := Parse(text, path.Dir(p))
	if err != nil {
		return nil, err
	}
	return c, c.load(h)
}

func (c *Config) load(h host.FS) error {
	var token []byte
	for _, f := range []struct {
		what, path string
		into       *[]byte
	}{
		{"CA", c.CAFile, &c.CA},
		{"client certificate", c.CertificateFile, &c.Certificate},
		{"client key", c.KeyFile, &c.Key},
		{"token", c.TokenFile, &token},
	} {
		if f.path == "" {
			continue
		}
		content, err := readThrough(h, f.path)
		if f.path == c.CAFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.what, err)
		}
		*f.into = content
	}
	if len(token) > 0 {
		c.Token = desired.Secret(bytes.TrimSpace(token))
	}
	return nil
}

// maxLinks is how many links readThrough follows; kubelet makes one.
const maxLinks = 8

// readThrough reads a file that may be a link: the host itself never follows the
// last element of a path.
func readThrough(h host.FS, p string) ([]byte, error) {
	for range maxLinks {
		info, err := h.Lstat(p)
		if err != nil {
			return nil, err
		}
		switch info.Mode.Type() {
		case fs.ModeDir: // a container runtime makes one where a file is missing
			return nil, &fs.PathError{Op: "read", Path: p, Err: fs.ErrNotExist}
		case fs.ModeSymlink:
		default:
			return h.ReadFile(p)
		}
		target, err := h.Readlink(p)
		if err != nil {
			return nil, err
		}
		p = absolute(path.Clean(target), path.Dir(p))
	}
	return nil, fmt.Errorf("%s: too many links", p)
}
