package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// name is what a registry is asked for.
func name(r oci.Reference) string {
	if r.Digest != "" {
		return r.Digest.String()
	}
	return r.Tag
}

// Manifest gets the manifest or index that the reference names, byte for byte.
// Nothing is chosen from an index.
//
// Errors: *StatusError, *RequestError, *oci.DigestError, *oci.ManifestError.
func (c *Client) Manifest(ctx context.Context, r oci.Reference) (v1.Descriptor, []byte, error) {
	body, contentType, err := c.manifest(ctx, r, "the reference")
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	said, _, _ := mime.ParseMediaType(contentType)
	m, err := oci.ParseManifest(body, said)
	if err != nil {
		return v1.Descriptor{}, nil, &oci.ManifestError{What: manifestOf(r).String(), Err: err}
	}
	return v1.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(body), Size: int64(len(body))}, body, nil
}

func manifestOf(r oci.Reference) Subject {
	return Subject{r.Registry, r.Repository, "manifest " + name(r)}
}

// manifest gets a manifest, and compares it with its digest, which comes from
// source, and with what the answer itself says.
func (c *Client) manifest(ctx context.Context, r oci.Reference, source string) (body []byte, contentType string, err error) {
	q := question{Subject: manifestOf(r), verified: r.Digest != ""}
	resp, err := c.get(ctx, r, q, "/manifests/"+name(r), http.Header{"Accept": {oci.Accepted}})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if body, err = small(ctx, q.Subject, resp.Body); err != nil {
		return nil, "", err
	}
	if err := same(q.Subject, body, r.Digest, source); err != nil {
		return nil, "", err
	}
	return body, resp.Header.Get("Content-Type"), sameAsHeader(q.Subject, body, resp.Header)
}

// small reads a whole answer that has no reason to be large. A server that sees
// the connection go may end its answer in order, and too early.
func small(ctx context.Context, s Subject, in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, oci.MaxManifest+1))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, failure(ctx, s, err)
	}
	if len(body) > oci.MaxManifest {
		return nil, &oci.ManifestError{What: s.String(), Err: errors.New("it is larger than 4 MiB")}
	}
	return body, nil
}

func same(s Subject, body []byte, want digest.Digest, source string) error {
	if want == "" {
		return nil
	}
	if got := want.Algorithm().FromBytes(body); got != want {
		return &oci.DigestError{What: s.String(), Want: want.String(), Got: got.String(), Source: source}
	}
	return nil
}

const digestHeader = "Docker-Content-Digest"

func sameAsHeader(s Subject, body []byte, h http.Header) error {
	text := h.Get(digestHeader)
	if text == "" {
		return nil
	}
	want, err := digest.Parse(text)
	if err != nil {
		return &oci.ManifestError{What: s.String(), Err: fmt.Errorf("its header %s is %q", digestHeader, oci.Words(text, 100))}
	}
	return same(s, body, want, "the registry's header "+digestHeader)
}
