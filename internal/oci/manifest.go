package oci

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds, in bytes. Registries and containerd refuse larger manifests.
const (
	// MaxManifest is for manifests and indexes, as the distribution specification
	// asks of registries.
	MaxManifest = 4 << 20
	// MaxConfig is for an image's configuration.
	MaxConfig = 8 << 20
	// MaxBlob is for what is not read into memory.
	MaxBlob = 1 << 40
)

// Manifest is a manifest or an index.
type Manifest struct {
	MediaType string          `json:"mediaType"`
	Manifests []v1.Descriptor `json:"manifests"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	FSLayers  json.RawMessage `json:"fsLayers"`
}

// IsIndex says that it is an index, which lists manifests and other indexes; else
// it lists layers and has a Config.
func (m *Manifest) IsIndex() bool { return IsIndex(m.MediaType) }

// ParseManifest reads a manifest or an index; said is the media type that led to
// it, "" if nobody gave one. One that could be taken for either is refused: two
// readers could see two things in it.
func ParseManifest(raw []byte, said string) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("it is no JSON manifest: %s", Words(err.Error(), 200))
	}
	if err := m.setMediaType(said); err != nil {
		return nil, err
	}
	if err := m.checkShape(); err != nil {
		return nil, err
	}
	return m, m.checkParts()
}

func (m *Manifest) setMediaType(said string) error {
	switch {
	case m.MediaType == "" && said != "":
		m.MediaType = said
	case m.MediaType == "" && m.Manifests != nil:
		m.MediaType = v1.MediaTypeImageIndex
	case m.MediaType == "":
		m.MediaType = v1.MediaTypeImageManifest
	case isKnown(said) && said != m.MediaType:
		return fmt.Errorf("what leads to it says that it is %s, and its content %q", said, Words(m.MediaType, 100))
	}
	if !isKnown(m.MediaType) {
		return fmt.Errorf("its media type is %q, want an OCI or Docker (schema 2) manifest or index", Words(m.MediaType, 100))
	}
	return nil
}

func (m *Manifest) checkShape() error {
	switch {
	case m.FSLayers != nil:
		return errors.New("it is of Docker's first schema, which containerd no longer reads")
	case m.IsIndex() && (m.Manifests == nil || m.Config != nil || m.Layers != nil):
	case !m.IsIndex() && m.Manifests != nil:
	case !m.IsIndex() && m.Config == nil:
		return errors.New("it is neither a manifest nor an index: it has no config")
	default:
		return nil
	}
	return fmt.Errorf("its media type is %s, but it lists %d layers and %d manifests", m.MediaType, len(m.Layers), len(m.Manifests))
}

func (m *Manifest) checkParts() error {
	all := append(append([]v1.Descriptor{}, m.Layers...), m.Manifests...)
	if m.Config != nil {
		all = append(all, *m.Config)
	}
	for _, d := range all {
		if !isSHA256(d.Digest) {
			return fmt.Errorf("it lists %q, which is no digest of the form sha256:<64 hex digits>", Words(d.Digest.String(), 100))
		}
		if d.Size < 0 || d.Size > MaxBlob {
			return fmt.Errorf("it lists %s with a size of %d bytes", d.Digest, d.Size)
		}
	}
	return nil
}
