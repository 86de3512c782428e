package oci

import (
	"context"
	"net/http"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Manifest gets the manifest or index that the reference names, byte for byte,
// for whoever copies an image. Nothing is chosen from an index.
//
// Errors: *StatusError, *RequestError, *DigestError, *ManifestError.
func (c *Client) Manifest(ctx context.Context, r Reference) (v1.Descriptor, []byte, error) {
	q := question{Subject: Subject{r.Registry, r.Repository, "manifest " + r.name()}, verified: r.Digest != ""}
	resp, err := c.get(ctx, r, q, "/manifests/"+r.name(), http.Header{"Accept": {accepted}})
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	defer resp.Body.Close()
	body, err := small(ctx, q.Subject, resp.Body)
	if err == nil {
		err = same(q.Subject, body, r.Digest, "the reference")
	}
	if err == nil {
		err = sameAsHeader(q.Subject, body, resp.Header)
	}
	d := &manifest{subject: q.Subject}
	if err == nil {
		err = d.decode(body, resp.Header.Get("Content-Type"))
	}
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	return v1.Descriptor{MediaType: d.MediaType, Digest: digest.FromBytes(body), Size: int64(len(body))}, body, nil
}
