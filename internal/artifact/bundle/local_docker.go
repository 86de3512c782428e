package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/inflate"
	"github.com/berth-dev/berth/internal/oci"
)

// dockerName is the file that lists the images of an archive of docker save
// (moby, image/spec/v1.2: "combined image JSON + filesystem changeset format").
const dockerName = "manifest.json"

type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// readDocker makes images of an archive of docker save: it has configurations
// and layers, but no manifests.
func (l *Local) readDocker() error {
	var list []dockerImage
	if err := l.decode(dockerName, &list); err != nil {
		return err
	}
	for _, d := range list {
		i, err := l.dockerImage(d)
		if err != nil {
			return err
		}
		l.images = append(l.images, i)
	}
	if len(l.images) == 0 {
		return &LocalError{"it is an archive of docker save without images"}
	}
	return nil
}

func (l *Local) dockerImage(d dockerImage) (localImage, error) {
	i := localImage{made: map[string][]byte{}, where: map[string]string{}}
	for _, tag := range d.RepoTags {
		if name, err := oci.ParseImage(tag); err == nil {
			i.names = append(i.names, name.Complete())
		}
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Layers: []ocispec.Descriptor{}}
	m.SchemaVersion = 2
	var err error
	if m.Config, err = l.describe(i, d.Config, ocispec.MediaTypeImageConfig); err != nil {
		return i, err
	}
	for _, name := range d.Layers {
		layer, err := l.describe(i, name, ocispec.MediaTypeImageLayer)
		if err != nil {
			return i, err
		}
		m.Layers = append(m.Layers, layer)
	}
	raw, err := encodeJSON(m)
	if err != nil {
		return i, err
	}
	i.root = ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	i.made[i.root.Digest.String()] = raw
	return i, nil
}

// layerType is what a layer is by its first bytes.
func layerType(head []byte) string {
	switch {
	case inflate.IsGzip(head):
		return ocispec.MediaTypeImageLayerGzip
	case inflate.IsZstd(head):
		return ocispec.MediaTypeImageLayerZstd
	}
	return ocispec.MediaTypeImageLayer
}

// describe reads a file and remembers where its digest is.
func (l *Local) describe(i localImage, name, mediaType string) (ocispec.Descriptor, error) {
	name = path.Clean(name)
	f, err := l.files.Open(name)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return ocispec.Descriptor{}, fmt.Errorf("read %s: %w", name, err)
	}
	if mediaType == ocispec.MediaTypeImageLayer {
		mediaType = layerType(head[:n])
	}
	m := &meter{sum: sha256.New()}
	if _, err := io.Copy(m, io.MultiReader(bytes.NewReader(head[:n]), f)); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("read %s: %w", name, err)
	}
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.Digest("sha256:" + m.hex()), Size: m.n}
	i.where[d.Digest.String()] = name
	return d, nil
}
