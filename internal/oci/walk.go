package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Source has the parts of an image: a registry, containerd's content store, a
// bundle.
type Source interface {
	// Open opens a part. It need not verify it. Of d, digest and media type count;
	// the size is -1 where nobody gave it.
	Open(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}

// Part is a manifest, an index or a configuration that was read and verified.
type Part struct {
	v1.Descriptor
	Raw []byte
}

// Node is a manifest or an index.
type Node struct {
	Part
	Manifest *Manifest
}

// Content is what a platform needs of what a reference leads to.
type Content struct {
	// Way leads to the manifest, which is the last: one index inside another
	// before it.
	Way []Node
	// Config describes the configuration of an image, or whatever an artifact has
	// in its place.
	Config v1.Descriptor
	// Layers make the file system of an image, the lowest one first; of an
	// artifact, each is a file.
	Layers []v1.Descriptor

	source   Source
	platform Platform
}

// maxIndexes bounds how many indexes lie in one another. Real images have one.
const maxIndexes = 4

// Walk goes from root to the manifest that the platform runs. Each index is left
// by one way only. It opens indexes and manifests, and nothing else.
//
// Errors: *ManifestError, *PlatformError, *DigestError, *SizeError; those of
// source.Open as they are.
func Walk(ctx context.Context, source Source, root v1.Descriptor, p Platform) (*Content, error) {
	c := &Content{source: source, platform: p}
	from := "the reference"
	for d, indexes := root, 0; ; indexes++ {
		n, err := readNode(ctx, source, d, from)
		if err != nil {
			return nil, err
		}
		c.Way = append(c.Way, n)
		if !n.Manifest.IsIndex() {
			c.Config, c.Layers = *n.Manifest.Config, n.Manifest.Layers
			return c, nil
		}
		if indexes == maxIndexes {
			return nil, refused(root, fmt.Errorf("indexes lie in it more than %d deep", maxIndexes))
		}
		if d, err = p.choose(n); err != nil {
			return nil, err
		}
		from = "the index"
	}
}

// readNode reads a manifest or an index and completes its descriptor.
func readNode(ctx context.Context, source Source, d v1.Descriptor, from string) (Node, error) {
	raw, err := read(ctx, source, d, MaxManifest, from)
	if err != nil {
		return Node{}, err
	}
	m, err := ParseManifest(raw, d.MediaType)
	if err != nil {
		return Node{}, refused(d, err)
	}
	d = v1.Descriptor{MediaType: m.MediaType, Digest: d.Digest, Size: int64(len(raw)), Platform: d.Platform}
	return Node{Part{d, raw}, m}, nil
}

// read reads a small part whole and verifies what from says of it.
func read(ctx context.Context, source Source, d v1.Descriptor, limit int64, from string) ([]byte, error) {
	if !isSHA256(d.Digest) {
		return nil, refused(d, errors.New("it is not named by a sha256"))
	}
	if d.Size > limit {
		return nil, refused(d, fmt.Errorf("%d bytes are more than the %d of any real one", d.Size, limit))
	}
	in, err := source.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", d.Digest, err)
	}
	return raw, verify(raw, d, limit, from)
}

func verify(raw []byte, d v1.Descriptor, limit int64, from string) error {
	n, got := int64(len(raw)), digest.FromBytes(raw)
	switch {
	case n > limit:
		return refused(d, fmt.Errorf("it has more than the %d bytes of any real one", limit))
	case got != d.Digest:
		return &DigestError{"blob " + d.Digest.String(), d.Digest.String(), got.String(), from}
	case d.Size >= 0 && n != d.Size:
		return &SizeError{"blob " + d.Digest.String(), d.Size, n}
	}
	return nil
}

// Root is what the reference names.
func (c *Content) Root() v1.Descriptor { return c.Way[0].Descriptor }

// Manifest is the one that lists the layers.
func (c *Content) Manifest() v1.Descriptor { return c.Way[len(c.Way)-1].Descriptor }

// IsImage says that the layers make a file system.
func (c *Content) IsImage() bool { return IsConfig(c.Config.MediaType) }

// Parts are what there is of the content for somebody who keeps all of it: what
// was read, the configuration of an image included, and descriptors of the rest.
// Errors are as of Walk.
func (c *Content) Parts(ctx context.Context) (read []Part, rest []v1.Descriptor, err error) {
	for _, n := range c.Way {
		read = append(read, n.Part)
	}
	if !c.IsImage() {
		return read, append([]v1.Descriptor{c.Config}, c.Layers...), nil
	}
	config, err := c.Image(ctx)
	return append(read, config), c.Layers, err
}

// Image reads the configuration of an image and refuses one that is for another
// platform or of other layers: no container could start from it. Errors are as of
// Walk.
func (c *Content) Image(ctx context.Context) (Part, error) {
	raw, config, err := c.config(ctx)
	if err != nil {
		return Part{}, err
	}
	if !c.platform.Runs(config.Platform) {
		return Part{}, c.misfit(config.Platform)
	}
	if n := len(config.RootFS.DiffIDs); n != len(c.Layers) {
		return Part{}, refused(c.Manifest(), fmt.Errorf("%d layers, but its config knows of %d", len(c.Layers), n))
	}
	return Part{c.Config, raw}, nil
}

func (c *Content) config(ctx context.Context) ([]byte, *v1.Image, error) {
	raw, err := read(ctx, c.source, c.Config, MaxConfig, "the manifest")
	if err != nil {
		return nil, nil, err
	}
	config := &v1.Image{}
	if err := json.Unmarshal(raw, config); err != nil {
		return nil, nil, refused(c.Config, fmt.Errorf("it is no configuration of an image: %s", Words(err.Error(), 200)))
	}
	return raw, config, nil
}

func (c *Content) misfit(p v1.Platform) error {
	e := c.platform.misfit(c.Manifest())
	e.add(p)
	return e
}

// Fits reads the platform of an image for which no index gave one and refuses
// another than that of the machine. One that names no architecture has files for
// any. Errors are as of Walk.
func (c *Content) Fits(ctx context.Context) error {
	if !c.IsImage() || c.Way[len(c.Way)-1].Platform != nil {
		return nil
	}
	_, config, err := c.config(ctx)
	if err != nil || config.Architecture == "" || c.platform.Runs(config.Platform) {
		return err
	}
	return c.misfit(config.Platform)
}

// File is the one file that an artifact is. Its error is a *ManifestError.
func (c *Content) File() (v1.Descriptor, error) {
	if c.IsImage() {
		return v1.Descriptor{}, refused(c.Manifest(), errors.New("it is an image, whose layers are no files"))
	}
	if len(c.Layers) == 1 {
		return c.Layers[0], nil
	}
	var names []byte
	for i, l := range c.Layers[:min(len(c.Layers), maxNames)] {
		if i > 0 {
			names = append(names, ", "...)
		}
		names = strconv.AppendQuote(names, Words(l.Annotations[v1.AnnotationTitle], 100))
	}
	return v1.Descriptor{}, refused(c.Manifest(), fmt.Errorf("it lists %d files, want one: %s", len(c.Layers), names))
}
