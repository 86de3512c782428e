package imagestore

import (
	"context"
	"slices"
	"strings"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"google.golang.org/grpc/codes"

	"github.com/berth-dev/berth/internal/oci"
)

func isTag(name string) bool {
	return !strings.Contains(name, "@") && !strings.HasPrefix(name, "sha256:")
}

// remove takes a name away and, where no tag stands for the image any more, all
// its other names: what containerd has of it is gone when it returns.
func (s *Store) remove(ctx context.Context, ref string) error {
	n, err := oci.ParseImage(ref)
	if err != nil {
		return err
	}
	c, err := s.open()
	if err != nil {
		return err
	}
	defer c.close()
	have, err := c.lookup(ctx, n.Pulled())
	if err != nil || have == nil {
		return err
	}
	all, err := c.images.List(ctx, &imagesapi.ListImagesRequest{Filters: []string{"target.digest==" + have.Target.GetDigest()}})
	if err != nil {
		return err
	}
	doomed := []string{n.Pulled()}
	for _, i := range all.GetImages() {
		if i.Name != n.Pulled() {
			doomed = append(doomed, i.Name)
		}
	}
	if slices.ContainsFunc(doomed[1:], isTag) {
		doomed = doomed[:1]
	}
	for i, name := range doomed {
		if _, err := c.images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name, Sync: i == len(doomed)-1}); err != nil && !isCode(err, codes.NotFound) {
			return err
		}
	}
	return nil
}
