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
	if r.Discovery != nil {
		var err error
		if f.ClusterCA, err = discover(ctx, h, r.Discovery); err != nil {
			return f, err
		}
	}
	if q := r.Settings; q != nil {
		f.Cluster = askSettings(ctx, h, q, caOf(q, f))
	}
	return f, nil
}

func discover(ctx context.Context, h host.FS, d *component.Discovery) ([]byte, error) {
	if known, err := h.ReadFile(d.Known); err == nil && apiserver.Pinned(known, d.Pin) {
		return known, nil
	}
	token, err := tokenOf(h, d.TokenFile, d.TokenEnv, d.Token)
	if err != nil {
		return nil, &apiserver.DiscoveryError{Server: d.Server, Err: err}
	}
	return apiserver.ClusterCA(ctx, d.Server, d.Pin, token)
}

// tokenOf is a token that a file, a variable or the document itself holds.
func tokenOf(h host.FS, file, variable, text string) (desired.Secret, error) {
	switch {
	case file != "":
		b, err := h.ReadFile(file)
		if err != nil {
			return "", err
		}
		text = string(b)
	case variable != "":
		text = os.Getenv(variable)
	}
	return desired.Secret(strings.TrimSpace(text)), nil
}
