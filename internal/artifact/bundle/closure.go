package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/oci"
)

// maxMetadata bounds manifests, indexes and configurations: 4 MiB, as the
// distribution specification asks of registries.
const maxMetadata = 4 << 20

// maxNested bounds how deep indexes may lie in indexes.
const maxNested = 4

// walker goes through what a platform needs of an image.
type walker struct {
	// platform is "linux/amd64".
	platform string
	// read gets a manifest, an index or a configuration whole and says
	// whether it is what its digest says.
	read func(ocispec.Descriptor) ([]byte, error)
	// leaf takes what is not looked into: a layer, or the configuration of what is
	// no image.
	leaf func(ocispec.Descriptor) error
}

// imageManifest is a manifest or an index.
type imageManifest struct {
	MediaType string               `json:"mediaType"`
	Manifests []ocispec.Descriptor `json:"manifests"`
	Config    *ocispec.Descriptor  `json:"config"`
	Layers    []ocispec.Descriptor `json:"layers"`
}

// walk goes through an image from its root. Errors are *ImageError without the
// reference, or those of the walker's functions.
func (w *walker) walk(root ocispec.Descriptor) error { return w.node(root, 0) }

func (w *walker) node(d ocispec.Descriptor, depth int) error {
	if depth > maxNested {
		return about(d, errors.New("indexes lie in it too deep"))
	}
	if err := checkDescriptor(d); err != nil {
		return err
	}
	raw, err := w.read(d)
	if err != nil {
		return err
	}
	doc, err := parseImageManifest(raw, d.MediaType)
	if err != nil {
		return about(d, err)
	}
	if oci.IsIndex(d.MediaType) {
		return w.index(d, doc, depth)
	}
	return w.manifest(doc)
}

// parseImageManifest reads a manifest or index of a media type. One that could be taken for
// either kind is refused: two readers would see two images.
func parseImageManifest(raw []byte, mediaType string) (*imageManifest, error) {
	doc := &imageManifest{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	switch {
	case doc.MediaType != "" && doc.MediaType != mediaType:
		return nil, fmt.Errorf("it says to be %q and what leads to it %q", doc.MediaType, mediaType)
	case oci.IsIndex(mediaType) && doc.Manifests != nil && doc.Config == nil && doc.Layers == nil:
		return doc, nil
	case oci.IsManifest(mediaType) && doc.Manifests == nil && doc.Config != nil:
		return doc, nil
	}
	return nil, fmt.Errorf("its content is not that of %q", mediaType)
}

func (w *walker) index(d ocispec.Descriptor, doc *imageManifest, depth int) error {
	var have []string
	fit := 0
	for _, m := range doc.Manifests {
		if m.Platform != nil && platformOf(*m.Platform) != w.platform {
			have = append(have, platformOf(*m.Platform))
			continue
		}
		fit++
		if err := w.node(m, depth+1); err != nil {
			return err
		}
	}
	if fit == 0 {
		return about(d, w.misfit(have))
	}
	return nil
}

func (w *walker) misfit(have []string) error {
	slices.Sort(have)
	have = slices.DeleteFunc(slices.Compact(have), func(p string) bool { return strings.HasPrefix(p, "unknown/") })
	return fmt.Errorf("not for %s; it is for %s", w.platform, or(strings.Join(have, ", "), "none"))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (w *walker) manifest(doc *imageManifest) error {
	for _, one := range append([]ocispec.Descriptor{*doc.Config}, doc.Layers...) {
		if err := checkDescriptor(one); err != nil {
			return err
		}
	}
	if err := w.config(*doc.Config, len(doc.Layers)); err != nil {
		return err
	}
	for _, l := range doc.Layers {
		if err := w.leaf(l); err != nil {
			return err
		}
	}
	return nil
}

// config looks into an image's configuration: it must be for the platform, and
// of as many layers, or no container could start from it.
func (w *walker) config(d ocispec.Descriptor, layers int) error {
	if !oci.IsConfig(d.MediaType) {
		return w.leaf(d)
	}
	raw, err := w.read(d)
	if err != nil {
		return err
	}
	var config ocispec.Image
	if err := json.Unmarshal(raw, &config); err != nil {
		return about(d, fmt.Errorf("read configuration: %w", err))
	}
	if got := platformOf(config.Platform); got != w.platform {
		return about(d, w.misfit([]string{got}))
	}
	if n := len(config.RootFS.DiffIDs); n != layers {
		return about(d, fmt.Errorf("it knows of %d layers, and its manifest of %d", n, layers))
	}
	return nil
}

func platformOf(p ocispec.Platform) string { return p.OS + "/" + p.Architecture }

func checkDescriptor(d ocispec.Descriptor) error {
	if !isDigest(d.Digest.String()) {
		return about(d, errors.New("it is not named by a sha256"))
	}
	if d.Size < 0 || d.Size > maxBlobSize {
		return about(d, fmt.Errorf("it is said to have %d bytes", d.Size))
	}
	return nil
}

func about(d ocispec.Descriptor, err error) error {
	return &ImageError{Digest: d.Digest.String(), Err: err}
}

// of names the image in an error of a walk.
func of(reference string, err error) error {
	var e *ImageError
	if errors.As(err, &e) && e.Reference == "" {
		e.Reference = reference
		return e
	}
	return err
}
