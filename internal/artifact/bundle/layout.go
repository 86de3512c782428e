package bundle

import (
	"archive/tar"
	"bytes"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// blockSize is tar's.
const blockSize = 512

// maxPlain is the largest size that a header of the POSIX form can say; above it
// GNU's form is used, which every tar reads too.
const maxPlain = 1<<33 - 1

// header is the only header that a member of this name and size can have.
func header(name string, size int64) ([]byte, error) {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR}
	if size > maxPlain {
		h.Format = tar.FormatGNU
	}
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		return nil, fmt.Errorf("header of %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// padded is a size with what fills its last block.
func padded(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// tail is what follows the last member.
const tail = 2 * blockSize

// layoutFile is the member oci-layout.
func layoutFile() ([]byte, error) {
	return encodeJSON(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
}

// containerdName is the annotation by which containerd names what it imports.
const containerdName = "io.containerd.image.name"

// indexFile is the member index.json: the images for the readers of an OCI
// layout. It follows from the manifest.
func (m *Manifest) indexFile() ([]byte, error) {
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	index.SchemaVersion = 2
	for _, i := range m.Images {
		d := i.descriptor()
		d.Annotations = map[string]string{containerdName: i.Reference, ocispec.AnnotationRefName: i.Reference}
		index.Manifests = append(index.Manifests, d)
	}
	return encodeJSON(index)
}

func (i *Image) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: i.MediaType, Digest: digest.Digest(i.Digest), Size: i.Size}
}
