package imagestore

import (
	"context"
	"slices"
	"strings"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"google.golang.org/grpc/codes"
)

// Remove takes the name away that Import gave, and, where no other name stands
// for the image, the names by digest and the blobs: they are gone when it returns.
// What runs of it goes on. A name that is not there is no error. It waits for
// containerd as Import does.
func (s *Store) Remove(ctx context.Context, ref string) error {
	n, err := parseReference(ref)
	if err != nil {
		return err
	}
	c, err := s.open()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.connected(ctx); err != nil {
		return err
	}
	have, err := c.lookup(ctx, n.main())
	if err != nil || have == nil {
		return err
	}
	siblings, err := c.siblings(ctx, have.Target.GetDigest())
	if err != nil {
		return err
	}
	return c.unname(ctx, n.doomed(have.Target.GetDigest(), siblings))
}

// siblings are all names of what a digest stands for.
func (c *session) siblings(ctx context.Context, digest string) (found []string, err error) {
	err = c.call(ctx, "list images", func(ctx context.Context) error {
		found = nil
		r, err := c.images.List(ctx, &imagesapi.ListImagesRequest{Filters: []string{"target.digest==" + digest}})
		for _, img := range r.GetImages() {
			found = append(found, img.Name)
		}
		return err
	})
	return found, err
}

// doomed are the names that go with the main one: the repository's name by
// digest where no other tag of the repository stands for it, the image's id where
// no other name at all does.
func (n names) doomed(digest string, siblings []string) []string {
	others := slices.DeleteFunc(slices.Clone(siblings), func(s string) bool {
		return s == n.main() || s == n.digested(digest) || isID(s)
	})
	out := []string{n.main()}
	sameRepository := func(s string) bool { return strings.HasPrefix(s, n.repository+":") }
	if d := n.digested(digest); d != n.main() && slices.Contains(siblings, d) && !slices.ContainsFunc(others, sameRepository) {
		out = append(out, d)
	}
	for _, s := range siblings {
		if isID(s) && len(others) == 0 {
			out = append(out, s)
		}
	}
	return out
}

// isID says whether a name is the id that the CRI plugin gives an image.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// unname deletes names. The last deletion returns when the garbage is collected.
func (c *session) unname(ctx context.Context, doomed []string) error {
	for i, name := range doomed {
		err := c.call(ctx, "remove image "+name, func(ctx context.Context) error {
			_, err := c.images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name, Sync: i == len(doomed)-1})
			if isCode(err, codes.NotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
