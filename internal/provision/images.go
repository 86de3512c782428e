package provision

import (
	"context"
	"errors"
	"io"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/imagestore"
)

// BundledImages are those of the machine's bundles.
func BundledImages(h host.FS) ([]component.BundledImage, error) {
	found, err := artifact.Images(h)
	var all []component.BundledImage
	for _, i := range found {
		all = append(all, component.BundledImage{Reference: i.Reference, Digest: i.Digest})
	}
	return all, err
}

// Images brings container images into the machine's containerd: those of its
// bundles, and those that a document has come from a registry.
type Images struct {
	Host    host.FS
	Fetcher *artifact.Fetcher
	store   imagestore.Store
}

// Lacks implements converge.Images.
func (s *Images) Lacks(ctx context.Context, i *desired.Image) (string, error) {
	ok, reason, err := s.store.Has(ctx, imagestore.Image{Reference: i.Reference, Digest: i.Digest, Pinned: i.Pinned})
	if _, stopped := errors.AsType[*imagestore.NotRunningError](err); stopped {
		return "containerd does not run yet", nil
	}
	if ok {
		return "", err
	}
	return reason, err
}

// Import implements converge.Images.
func (s *Images) Import(ctx context.Context, i *desired.Image) (converge.Staged, error) {
	if i.Pinned {
		if whole, err := s.store.Pin(ctx, imagestore.Image{Reference: i.Reference, Digest: i.Digest}); whole || err != nil {
			return converge.Staged{}, err
		}
	}
	if i.Source == "" {
		return converge.Staged{}, s.unpack(ctx, i)
	}
	return s.pull(ctx, i)
}

// unpack takes an image out of a bundle.
func (s *Images) unpack(ctx context.Context, i *desired.Image) error {
	b, file, err := artifact.ImageBundle(s.Host, i.Digest, i.Reference)
	if err != nil {
		return err
	}
	defer file.Close()
	return s.store.Import(ctx, imagestore.Image{Reference: i.Reference, Digest: i.Digest, Pinned: i.Pinned, Source: bundled{b}})
}

// pull takes an image from its source in a registry. containerd checks what the
// manifest promises.
func (s *Images) pull(ctx context.Context, i *desired.Image) (converge.Staged, error) {
	from, err := s.Fetcher.Image(ctx, i.Source, i.Via)
	if err != nil {
		return converge.Staged{}, err
	}
	if i.Digest != "" && from.Digest != i.Digest {
		return converge.Staged{}, &artifact.DigestError{URL: i.Source, Want: i.Digest, Got: from.Digest, Source: "the document"}
	}
	err = s.store.Import(ctx, imagestore.Image{Reference: i.Reference, Digest: from.Digest, Pinned: i.Pinned, Source: from})
	return converge.Staged{URL: i.Source, SHA256: strings.TrimPrefix(from.Digest, "sha256:"), Unverified: !from.Named && i.Digest == ""}, err
}

// bundled are the parts of images in a bundle.
type bundled struct{ *bundle.Bundle }

// Open implements oci.Source.
func (b bundled) Open(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	content, err := b.Blob(d.Digest.String())
	return blob{content}, err
}

// blob is a part of a bundle; Close leaves the bundle open.
type blob struct{ *io.SectionReader }

// Close implements io.Closer.
func (blob) Close() error { return nil }
