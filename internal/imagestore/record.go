package imagestore

import (
	"context"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc/codes"
)

// The labels by which containerd's CRI plugin knows an image of kubelet's, and
// one that kubelet must keep.
const (
	managedKey, managedValue = "io.cri-containerd.image", "managed"
	pinnedKey, pinnedValue   = "io.cri-containerd.pinned", "pinned"
)

// labels are those of the image's records.
func (i Image) labels() map[string]string {
	labels := map[string]string{managedKey: managedValue}
	if i.Pinned {
		labels[pinnedKey] = pinnedValue
	}
	return labels
}

// record gives a name to an image, or changes what the name stands for. Labels of
// others stay.
func (c *session) record(ctx context.Context, name string, target ocispec.Descriptor, labels map[string]string) error {
	img := &imagesapi.Image{Name: name, Labels: labels,
		Target: &types.Descriptor{MediaType: target.MediaType, Digest: target.Digest.String(), Size: target.Size}}
	return c.call(ctx, "name image "+name, func(ctx context.Context) error {
		_, err := c.images.Create(ctx, &imagesapi.CreateImageRequest{Image: img})
		if !isCode(err, codes.AlreadyExists) {
			return err
		}
		return c.amend(ctx, img)
	})
}

// amend changes a record only where it differs: each change is an event for the
// CRI plugin.
func (c *session) amend(ctx context.Context, img *imagesapi.Image) error {
	have, err := c.images.Get(ctx, &imagesapi.GetImageRequest{Name: img.Name})
	if err != nil {
		return err
	}
	missing := missingLabels(have.Image.Labels, img.Labels)
	same := have.Image.Target.GetDigest() == img.Target.Digest
	if same && len(missing) == 0 {
		return nil
	}
	_, err = c.images.Update(ctx, &imagesapi.UpdateImageRequest{Image: img, UpdateMask: labelMask(missing, "target")})
	return err
}

// lookup finds a record; nil if there is none.
func (c *session) lookup(ctx context.Context, name string) (*imagesapi.Image, error) {
	var found *imagesapi.Image
	err := c.call(ctx, "look up image "+name, func(ctx context.Context) error {
		r, err := c.images.Get(ctx, &imagesapi.GetImageRequest{Name: name})
		if isCode(err, codes.NotFound) {
			return nil
		}
		found = r.GetImage()
		return err
	})
	return found, err
}
