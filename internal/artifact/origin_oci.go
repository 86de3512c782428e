package artifact

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/desired"
)

// registries are the registry clients of a fetcher, one for each HTTP client.
type registries struct {
	mu  sync.Mutex
	all map[*http.Client]*oci.Client
}

// by is the registry client over an HTTP client: anonymous, but to Azure's
// registries as this machine's managed identity if they want to know. Every way
// out has an HTTP client of its own.
func (r *registries) by(client *http.Client, via *desired.Egress, arch string) *oci.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.all[client]; c != nil {
		return c
	}
	if r.all == nil {
		r.all = map[*http.Client]*oci.Client{}
	}
	acr := &oci.ACR{HTTP: client}
	if via != nil && via.Identity != nil {
		acr.ClientID, acr.TenantID, acr.Suffixes = via.Identity.ClientID, via.Identity.TenantID, via.Identity.Suffixes
	}
	r.all[client] = &oci.Client{HTTP: client, Arch: arch, Credentials: acr.Credential}
	return r.all[client]
}

// stock is what a reference to a registry names.
type stock struct {
	client *oci.Client
	ref    oci.Reference

	mu      sync.Mutex
	content *oci.Content
}

// resolve asks the registry once.
func (s *stock) resolve(ctx context.Context) (*oci.Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.content != nil {
		return s.content, nil
	}
	content, err := s.client.Resolve(ctx, s.ref)
	if err == nil {
		s.content = content
	}
	return content, err
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
	return (&blob{s.client, content.Reference, layer}).open(ctx, offset, tag)
}

// blob is a layer in a registry.
type blob struct {
	client *oci.Client
	ref    oci.Reference
	layer  oci.Layer
}

func (b *blob) open(ctx context.Context, offset int64, _ string) (*flow, error) {
	body, start, err := b.client.Blob(ctx, b.ref, b.layer, offset)
	if err != nil {
		return nil, err
	}
	return &flow{body: body, start: start, size: b.layer.Size, tag: b.layer.Digest.String()}, nil
}

// hex256 is a digest without its algorithm.
func hex256(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
