package imagestore

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/oci"
)

// Import makes an image available: it sends the blobs that containerd lacks and
// names the image. It waits for a containerd that is starting or mute, for a minute. An
// image that is there already costs a few questions.
//
// Errors: *NotRunningError, *NoSpaceError, *DigestError (of the source's
// content), those of oci.Walk, *Error for any other answer of containerd; those of
// img.Source are wrapped. After each, a name stands for what
// it stood for before, and the next Import goes on.
func (s *Store) Import(ctx context.Context, img Image) error {
	ref, err := oci.ParseImage(img.Reference)
	if err == nil {
		err = agrees(ref, img.Digest)
	}
	if err != nil {
		return err
	}
	want, err := resolve(ctx, img.Source, img.Digest)
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
	return c.store(ctx, img, ref, want)
}

// store is stored, again where another import of the same image came to its end
// and ended the lease that both had.
func (c *session) store(ctx context.Context, img Image, ref oci.Reference, want *closure) error {
	for range 3 {
		if err := c.stored(ctx, img, ref, want); !isLeaseGone(err) {
			return err
		}
	}
	return c.stored(ctx, img, ref, want)
}

func (c *session) stored(ctx context.Context, img Image, ref oci.Reference, want *closure) error {
	leased, release, err := c.lease(ctx, img.Digest)
	if err != nil {
		return err
	}
	if err := c.upload(leased, img, want); err != nil {
		return err
	}
	for _, name := range records(ref, want) {
		if err := c.record(leased, name, want.target, img.labels()); err != nil {
			return err
		}
	}
	return release()
}

// records are the names to give, the one that pods use last: those under which the
// CRI plugin keeps an image that it pulls.
func records(ref oci.Reference, want *closure) []string {
	out := []string{want.config.Digest.String(), ref.Name() + "@" + want.target.Digest.String()}
	if ref.Digest == "" {
		out = append(out, ref.Pulled())
	}
	return out
}

// agrees checks an image's digest against the one in its reference.
func agrees(ref oci.Reference, got string) error {
	if ref.Digest != "" && ref.Digest.String() != got {
		return &DigestError{Want: ref.Digest.String(), Err: fmt.Errorf("the image is %s", got)}
	}
	return nil
}

// upload sends layers and config side by side, then what refers to them: no
// manifest is there before what it needs.
func (c *session) upload(ctx context.Context, img Image, want *closure) error {
	g, side := errgroup.WithContext(ctx)
	g.SetLimit(uploads)
	for _, b := range want.leaves {
		u := &upload{session: c, blob: b, source: img.Source}
		g.Go(func() error { return u.run(side) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, b := range want.parents {
		if err := (&upload{session: c, blob: b, source: img.Source}).run(ctx); err != nil {
			return err
		}
	}
	return nil
}
