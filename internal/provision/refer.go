package provision

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Refer adds what a document refers to to the facts. A file that is not there is
// left out: what that means the document's contract says. A cluster is asked for its
// CA only where the machine does not have one that fits.
func Refer(ctx context.Context, h host.Host, r component.References, f component.Facts) (component.Facts, error) {
	for _, p := range r.Files {
		text, err := h.ReadFile(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return f, err
		case f.Files == nil:
			f.Files = map[string][]byte{}
		}
		f.Files[p] = text
	}
	if r.Discovery == nil {
		return f, nil
	}
	var err error
	f.ClusterCA, err = discover(ctx, h, r.Discovery)
	return f, err
}

func discover(ctx context.Context, h host.FS, d *component.Discovery) ([]byte, error) {
	if known, err := h.ReadFile(d.Known); err == nil && apiserver.Pinned(known, d.Pin) {
		return known, nil
	}
	token, err := tokenOf(h, d)
	if err != nil {
		return nil, err
	}
	return apiserver.ClusterCA(ctx, d.Server, d.Pin, token)
}

func tokenOf(h host.FS, d *component.Discovery) (desired.Secret, error) {
	text := d.Token
	switch {
	case d.TokenFile != "":
		b, err := h.ReadFile(d.TokenFile)
		if err != nil {
			return "", &apiserver.DiscoveryError{Server: d.Server, Err: err}
		}
		text = string(b)
	case d.TokenEnv != "":
		text = os.Getenv(d.TokenEnv)
	}
	return desired.Secret(strings.TrimSpace(text)), nil
}
