package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// Resolve gets the manifest that the reference names and, from an index, the one
// for linux and the client's architecture.
//
// Errors: *StatusError, *RequestError, *oci.DigestError, *oci.PlatformError,
// *oci.ManifestError, *oci.SizeError.
func (c *Client) Resolve(ctx context.Context, r oci.Reference) (*oci.Content, error) {
	root, raw, err := c.Manifest(ctx, r)
	if err != nil {
		return nil, err
	}
	content, err := oci.Walk(ctx, &source{c, r, root, raw}, root, oci.Linux(c.arch()))
	if err == nil {
		err = content.Fits(ctx)
	}
	if err == nil {
		return content, nil
	}
	if asked, ok := errors.AsType[*askError](err); ok {
		return nil, asked.err
	}
	return nil, fmt.Errorf("%s: %w", r.Name(), err)
}

// source is a registry as oci.Walk asks it.
type source struct {
	client *Client
	ref    oci.Reference
	// root is what the reference names, and raw its bytes: a tag may move.
	root v1.Descriptor
	raw  []byte
}

// askError tells the errors of the registry, which name it, from those of the walk.
type askError struct{ err error }

func (e *askError) Error() string { return e.err.Error() }

// Open implements oci.Source.
func (s *source) Open(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	raw, err := s.get(ctx, d)
	if err != nil {
		return nil, &askError{err}
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

func (s *source) get(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	switch {
	case d.Digest == s.root.Digest:
		return s.raw, nil
	case oci.IsConfig(d.MediaType):
		return s.config(ctx, d)
	}
	ref := s.ref
	ref.Digest = d.Digest
	raw, _, err := s.client.manifest(ctx, ref, "the index")
	return raw, err
}

func (s *source) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	in, _, err := s.client.Blob(ctx, s.ref, d, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}
