package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Pushed says under what digests something stands in a registry ("sha256:…").
type Pushed struct {
	Manifest string
	// Blob is that of the artifact's file, Size its bytes.
	Blob string
	Size int64
}

const (
	emptyType   = types.MediaType("application/vnd.oci.empty.v1+json")
	titleOfFile = "org.opencontainers.image.title"
)

// PushFile stores a file as an artifact of one layer, repository:tag, in the
// form that "oras push" gives it. artifactType and mediaType are the caller's.
//
// Source of the form: OCI image specification 1.1, "Guidelines for Artifact
// Usage".
func (r *Registry) PushFile(ctx context.Context, tag, artifactType, mediaType, file string) (Pushed, error) {
	ref, err := nameOf(tag)
	if err != nil {
		return Pushed{}, fmt.Errorf("push artifact: %w", err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Pushed{}, fmt.Errorf("push artifact: %w", err)
	}
	var all []v1.Descriptor
	for _, l := range []v1.Layer{static.NewLayer([]byte("{}"), emptyType), static.NewLayer(content, types.MediaType(mediaType))} {
		if err := remote.WriteLayer(ref.Repository, l, r.pushing(ctx)...); err != nil {
			return Pushed{}, fmt.Errorf("push artifact %s: %w", tag, err)
		}
		d, err := describe(l)
		if err != nil {
			return Pushed{}, err
		}
		all = append(all, d)
	}
	all[1].Annotations = map[string]string{titleOfFile: filepath.Base(file)}
	m, err := newArtifactManifest(artifactType, all[0], all[1])
	if err != nil {
		return Pushed{}, err
	}
	if err := remote.Put(ref, m, r.pushing(ctx)...); err != nil {
		return Pushed{}, fmt.Errorf("push artifact %s: %w", tag, err)
	}
	digest, _, err := v1.SHA256(bytes.NewReader(m))
	return Pushed{Manifest: digest.String(), Blob: all[1].Digest.String(), Size: all[1].Size}, err
}

func describe(l v1.Layer) (v1.Descriptor, error) {
	digest, err := l.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	size, err := l.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	mediaType, err := l.MediaType()
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, err
}

// artifactManifest is a manifest as it is sent.
type artifactManifest []byte

func newArtifactManifest(artifactType string, config, layer v1.Descriptor) (artifactManifest, error) {
	return json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": artifactType,
		"config": config, "layers": []v1.Descriptor{layer},
	})
}

// RawManifest implements remote.Taggable.
func (m artifactManifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType is sent as the manifest's Content-Type.
func (m artifactManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
