package artifact

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// registries are the registry clients of a fetcher, one for each HTTP client.
type registries struct {
	mu  sync.Mutex
	all map[*http.Client]*remote.Client
}

// by is the registry client over an HTTP client: anonymous, but to registries that the
// options' identity knows and that want to know. Every way out has an HTTP client of its
// own.
func (r *registries) by(client *http.Client, via *desired.Egress, o *Options) *remote.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.all[client]; c != nil {
		return c
	}
	if r.all == nil {
		r.all = map[*http.Client]*remote.Client{}
	}
	r.all[client] = clientOf(client, via, o)
	return r.all[client]
}

func clientOf(client *http.Client, via *desired.Egress, o *Options) *remote.Client {
	c := &remote.Client{HTTP: client, Arch: o.Arch}
	if o.Identity == nil {
		return c
	}
	var as *desired.ManagedIdentity
	if via != nil {
		as = via.Identity
	}
	c.Credentials = o.Identity(client, as)
	return c
}

// registry is the client that asks registries over a way out.
func (f *Fetcher) registry(via *desired.Egress) (*remote.Client, error) {
	client, err := f.clients.by(f.opt.Client, via)
	if err != nil {
		return nil, err
	}
	return f.registries.by(client, via, &f.opt), nil
}

// way is a server that has what a reference names.
type way struct {
	client          *remote.Client
	resolves, pulls bool
}

// stock is what a reference to a registry names.
type stock struct {
	// ways are asked in order until one answers.
	ways []way
	ref  oci.Reference

	mu      sync.Mutex
	content *oci.Content
}

// resolve asks once.
func (s *stock) resolve(ctx context.Context) (*oci.Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.content != nil {
		return s.content, nil
	}
	content, err := first(ctx, s.ways, s.ref, func(w way) bool { return w.resolves || w.pulls && s.ref.Digest != "" },
		func(w way) (*oci.Content, error) { return w.client.Resolve(ctx, s.ref) })
	if err == nil {
		s.content = content
	}
	return content, err
}

// first is the answer of the first way that fits and gives one; else what the last
// one says, which is the registry itself: of those that were asked.
func first[T any](ctx context.Context, ways []way, ref oci.Reference, fits func(way) bool, ask func(way) (T, error)) (out T, err error) {
	err = &RefusedError{URL: ref.String(), Reason: "no host that hosts.toml names may be asked for it"}
	asked := false
	for _, w := range ways {
		if !fits(w) {
			continue
		}
		got, said := ask(w)
		if _, unverified := errors.AsType[*remote.UnverifiedError](said); unverified && asked {
			continue
		}
		if out, err, asked = got, said, true; err == nil || ctx.Err() != nil {
			break
		}
	}
	return out, err
}

// open makes the single file of an artifact an origin.
func (s *stock) open(ctx context.Context, offset int64, tag string) (*flow, error) {
	content, err := s.resolve(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := content.File()
	if err != nil {
		return nil, err
	}
	return (&blob{s.ways, s.ref, layer}).open(ctx, offset, tag)
}

// blob is a layer in a registry.
type blob struct {
	ways  []way
	ref   oci.Reference
	layer v1.Descriptor
}

func (b *blob) open(ctx context.Context, offset int64, _ string) (*flow, error) {
	return first(ctx, b.ways, b.ref, func(w way) bool { return w.pulls }, func(w way) (*flow, error) {
		body, start, err := w.client.Blob(ctx, b.ref, b.layer, offset)
		if err != nil {
			return nil, err
		}
		return &flow{body: body, start: start, size: b.layer.Size, tag: b.layer.Digest.String()}, nil
	})
}

// hex256 is a digest without its algorithm.
func hex256(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
