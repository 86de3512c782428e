package imagestore

import (
	"context"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// Pin keeps kubelet's garbage collection from an image that is there and whole;
// where it is not, it says so and does nothing. img.Source is not asked. It waits
// for a containerd that is starting, as Import does.
func (s *Store) Pin(ctx context.Context, img Image) (whole bool, err error) {
	ref, err := oci.ParseImage(img.Reference)
	if err != nil {
		return false, err
	}
	c, err := s.open()
	if err != nil {
		return false, err
	}
	defer c.close()
	if err := c.connected(ctx); err != nil {
		return false, err
	}
	img.Pinned = true
	reason, err := c.lacks(ctx, ref, img)
	if err != nil || reason != "" && reason != unpinned {
		return false, err
	}
	return true, c.pin(ctx, ref.Pulled(), img.labels())
}

// pin labels one record of an image, which is enough for the CRI plugin.
func (c *session) pin(ctx context.Context, name string, labels map[string]string) error {
	have, err := c.lookup(ctx, name)
	if err != nil || have == nil {
		return err
	}
	t := have.Target
	return c.record(ctx, name, ocispec.Descriptor{MediaType: t.GetMediaType(), Digest: digest.Digest(t.GetDigest()), Size: t.GetSize()}, labels)
}
