package imagestore

import (
	"encoding/json"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The media types that Docker used before OCI, which mean the same.
const (
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// imageManifest is a manifest or an index.
type imageManifest struct {
	MediaType string               `json:"mediaType"`
	Manifests []ocispec.Descriptor `json:"manifests"`
	Config    *ocispec.Descriptor  `json:"config"`
	Layers    []ocispec.Descriptor `json:"layers"`
	FSLayers  json.RawMessage      `json:"fsLayers"`
}

// parseManifest reads a manifest or index. One that could be taken for either is
// refused: it could mean two images.
func parseManifest(raw []byte) (*imageManifest, error) {
	doc := &imageManifest{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	isIndex, isManifest := doc.Manifests != nil, doc.Config != nil || doc.Layers != nil
	switch {
	case doc.FSLayers != nil:
		return nil, errors.New("it is of Docker's first schema, which containerd no longer reads")
	case isIndex == isManifest:
		return nil, errors.New("it is neither a manifest nor an index")
	case isManifest && doc.Config == nil:
		return nil, errors.New("it has no config")
	}
	return doc, doc.setMediaType(isIndex)
}

func (d *imageManifest) setMediaType(isIndex bool) error {
	oci, docker := ocispec.MediaTypeImageManifest, dockerManifest
	if isIndex {
		oci, docker = ocispec.MediaTypeImageIndex, dockerIndex
	}
	switch d.MediaType {
	case "":
		d.MediaType = oci
	case oci, docker:
	default:
		return fmt.Errorf("media type %q does not fit its content", d.MediaType)
	}
	return nil
}
