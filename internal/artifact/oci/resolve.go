package oci

import (
	"context"
	"fmt"

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
	// Reference is as it was asked for; Pinned says that it gave a digest, so that
	// Digest and those of all layers are what its author meant.
	Reference Reference
	Pinned    bool
	// Digest is that of the manifest, Root that of what the reference names: the
	// index if the manifest was chosen from one, else the same.
	Digest, Root digest.Digest
	// Image says that the layers make a file system, the lowest one first; else
	// each is a file of an artifact of type ArtifactType.
	Image        bool
	ArtifactType string
	Config       Layer
	Layers       []Layer
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
	root, chosen := d.digest, d.isIndex()
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
	out.Root = root
	if out.Image && !chosen {
		err = c.checkConfig(ctx, r, d)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (d *document) content(r Reference) *Content {
	out := &Content{Reference: r, Pinned: r.Digest != "", Digest: d.digest, Config: layerOf(d.Config), ArtifactType: d.ArtifactType}
	out.Image = d.Config.MediaType == v1.MediaTypeImageConfig || d.Config.MediaType == dockerConfig
	if !out.Image && out.ArtifactType == "" {
		out.ArtifactType = d.Config.MediaType
	}
	for _, one := range d.Layers {
		out.Layers = append(out.Layers, layerOf(one))
	}
	return out
}

// File is the layer of an artifact that is the file of that name; "" is the
// single layer of an artifact that has only one. Its error is a *MissingError
// or a *ManifestError.
func (c *Content) File(name string) (Layer, error) {
	s := Subject{c.Reference.Registry, c.Reference.Repository, "manifest " + c.Digest.String()}
	if c.Image {
		return Layer{}, &ManifestError{s, "it is an image, whose layers are no files"}
	}
	if name == "" && len(c.Layers) == 1 {
		return c.Layers[0], nil
	}
	var found []Layer
	missing := &MissingError{Paths: []string{fmt.Sprintf("file %q", name)}}
	for _, l := range c.Layers {
		if l.Title == name && name != "" {
			found = append(found, l)
		} else if l.Title != "" && len(missing.Have) < maxNames {
			missing.Have = append(missing.Have, words(l.Title, 100, nil))
		}
	}
	switch {
	case len(found) == 0:
		return Layer{}, missing
	case len(found) > 1 && found[0].Digest != found[1].Digest:
		return Layer{}, &ManifestError{s, fmt.Sprintf("it lists %d files of the name %q", len(found), name)}
	}
	return found[0], nil
}
