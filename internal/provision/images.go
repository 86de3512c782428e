package provision

import (
	"context"
	"errors"
	"io"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component"
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

// Images brings those of the machine's bundles into its containerd.
type Images struct {
	Host  host.FS
	store imagestore.Store
}

// Lacks implements converge.Images.
func (s *Images) Lacks(ctx context.Context, i *desired.Image) (string, error) {
	ok, reason, err := s.store.Has(ctx, imagestore.Image{Reference: i.Reference, Digest: i.Digest})
	if _, stopped := errors.AsType[*imagestore.NotRunningError](err); stopped {
		return "containerd does not run yet", nil
	}
	if ok {
		return "", err
	}
	return reason, err
}

// Import implements converge.Images.
func (s *Images) Import(ctx context.Context, i *desired.Image) error {
	b, file, err := artifact.ImageBundle(s.Host, i.Digest, i.Reference)
	if err != nil {
		return err
	}
	defer file.Close()
	return s.store.Import(ctx, imagestore.Image{Reference: i.Reference, Digest: i.Digest, Blob: func(digest string) (io.ReadCloser, int64, error) {
		content, err := b.Blob(digest)
		if err != nil {
			return nil, 0, err
		}
		return blob{content}, content.Size(), nil
	}})
}

// blob is a part of a bundle; Close leaves the bundle open.
type blob struct{ *io.SectionReader }

// Close implements io.Closer.
func (blob) Close() error { return nil }
