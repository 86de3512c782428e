package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxManifest bounds manifests, indexes and configurations: 4 MiB, as the
// distribution specification asks of registries.
const maxManifest = 4 << 20

var accepted = strings.Join([]string{v1.MediaTypeImageIndex, v1.MediaTypeImageManifest, dockerList, dockerManifest}, ", ")

// manifest is a manifest or an index.
type manifest struct {
	MediaType string          `json:"mediaType"`
	Config    v1.Descriptor   `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`

	subject Subject
	digest  digest.Digest
}

func (d *manifest) refused(format string, args ...any) error {
	return &ManifestError{d.subject, fmt.Sprintf(format, args...)}
}

func (d *manifest) isIndex() bool { return IsIndex(d.MediaType) }

// manifest gets the manifest of a tag or digest; what is known of its digest
// comes with who said so.
func (c *Client) manifest(ctx context.Context, r Reference, want digest.Digest, source string) (*manifest, error) {
	name := r.name()
	if want != "" {
		name = want.String()
	}
	q := question{Subject: Subject{r.Registry, r.Repository, "manifest " + name}, verified: want != ""}
	resp, err := c.get(ctx, r, q, "/manifests/"+name, http.Header{"Accept": {accepted}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := small(ctx, q.Subject, resp.Body)
	if err != nil {
		return nil, err
	}
	if err := same(q.Subject, body, want, source); err != nil {
		return nil, err
	}
	if err := sameAsHeader(q.Subject, body, resp.Header); err != nil {
		return nil, err
	}
	d := &manifest{subject: q.Subject, digest: want}
	if want == "" {
		d.digest = digest.FromBytes(body)
	}
	return d, d.decode(body, resp.Header.Get("Content-Type"))
}

// small reads a whole answer that has no reason to be large. A server that sees
// the connection go may end its answer in order, and too early.
func small(ctx context.Context, s Subject, in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, failure(ctx, s, err)
	}
	if len(body) > maxManifest {
		return nil, &ManifestError{s, "it is larger than 4 MiB"}
	}
	return body, nil
}

func same(s Subject, body []byte, want digest.Digest, source string) error {
	if want == "" {
		return nil
	}
	if got := want.Algorithm().FromBytes(body); got != want {
		return &DigestError{s, want.String(), got.String(), source}
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
		return &ManifestError{s, fmt.Sprintf("its header %s is %q", digestHeader, words(text, 100, nil))}
	}
	return same(s, body, want, "the registry's header "+digestHeader)
}

// decode reads the body as what the answer's header and the body itself say that
// it is; where they differ, two readers could see two things in it.
func (d *manifest) decode(body []byte, contentType string) error {
	if err := json.Unmarshal(body, d); err != nil {
		return d.refused("it is no JSON manifest: %s", words(err.Error(), 200, nil))
	}
	header, _, _ := mime.ParseMediaType(contentType)
	switch {
	case d.MediaType == "":
		d.MediaType = header
	case knownManifest(header) && header != d.MediaType:
		return d.refused("its header says %s and its content %q", header, words(d.MediaType, 100, nil))
	}
	if !knownManifest(d.MediaType) {
		return d.refused("its media type is %q, want an OCI or Docker (schema 2) manifest or index", words(d.MediaType, 100, nil))
	}
	if d.isIndex() == (len(d.Manifests) == 0) || d.isIndex() && len(d.Layers) > 0 {
		return d.refused("its media type is %s, but it lists %d layers and %d manifests", d.MediaType, len(d.Layers), len(d.Manifests))
	}
	return d.checkDescriptors()
}

func knownManifest(mediaType string) bool { return IsIndex(mediaType) || IsManifest(mediaType) }

func (d *manifest) checkDescriptors() error {
	all := append(append([]v1.Descriptor{}, d.Layers...), d.Manifests...)
	if !d.isIndex() {
		all = append(all, d.Config)
	}
	for _, one := range all {
		if err := one.Digest.Validate(); err != nil {
			return d.refused("it lists %q, which is no digest", words(one.Digest.String(), 100, nil))
		}
		if one.Size < 0 {
			return d.refused("it lists %s with a size of %d bytes", one.Digest, one.Size)
		}
	}
	return nil
}
