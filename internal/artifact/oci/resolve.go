package oci

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Layer is a blob that a manifest lists.
type Layer struct {
	Digest digest.Digest
	// Size is in bytes.
	Size      int64
	MediaType string
	// Title is the name of the file that an artifact's layer is, or "". It is a
	// name to compare with, never a path to write to.
	Title string
}

func layerOf(d v1.Descriptor) Layer {
	return Layer{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType, Title: d.Annotations[v1.AnnotationTitle]}
}

// Content is what a reference names, for this machine's platform.
type Content struct {
	// Reference is as it was asked for.
	Reference Reference
	// Digest is that of the manifest: of the one chosen, if the reference names an
	// index.
	Digest digest.Digest
	// Image says that the layers make a file system, the lowest one first; else
	// each is a file of an artifact.
	Image  bool
	Layers []Layer
}

// maxNested bounds how deep indexes may lie in indexes.
const maxNested = 3

// Resolve gets the manifest that the reference names and, from an index, the one
// for linux and the client's architecture.
//
// Errors: *StatusError, *RequestError, *DigestError, *PlatformError,
// *ManifestError.
func (c *Client) Resolve(ctx context.Context, r Reference) (*Content, error) {
	d, err := c.manifest(ctx, r, r.Digest, "the reference")
	if err != nil {
		return nil, err
	}
	chosen := d.isIndex()
	for depth := 0; d.isIndex(); depth++ {
		if depth == maxNested {
			return nil, d.refused("indexes lie in it more than %d deep", maxNested)
		}
		one, err := c.choose(d)
		if err != nil {
			return nil, err
		}
		if d, err = c.manifest(ctx, r, one.Digest, "the index"); err != nil {
			return nil, err
		}
	}
	out := d.content(r)
	if out.Image && !chosen {
		err = c.checkConfig(ctx, r, d)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (d *manifest) content(r Reference) *Content {
	out := &Content{Reference: r, Digest: d.digest, Image: IsConfig(d.Config.MediaType)}
	for _, one := range d.Layers {
		out.Layers = append(out.Layers, layerOf(one))
	}
	return out
}

// File is the one file that an artifact is. Its error is a *ManifestError.
func (c *Content) File() (Layer, error) {
	if !c.Image && len(c.Layers) == 1 {
		return c.Layers[0], nil
	}
	s := Subject{c.Reference.Registry, c.Reference.Repository, "manifest " + c.Digest.String()}
	if c.Image {
		return Layer{}, &ManifestError{s, "it is an image, whose layers are no files"}
	}
	var names []string
	for _, l := range c.Layers[:min(len(c.Layers), maxNames)] {
		names = append(names, strconv.Quote(words(l.Title, 100, nil)))
	}
	return Layer{}, &ManifestError{s, fmt.Sprintf("it lists %d files, want one: %s", len(c.Layers), strings.Join(names, ", "))}
}
