package imagestore

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// Import makes an image available: it sends the blobs that containerd lacks and
// names the image. It waits for a containerd that is starting or mute, for a minute. An
// image that is there already costs a few questions.
//
// Errors: *NotRunningError, *NoSpaceError, *DigestError (of the source's
// content), *ManifestError, *PlatformError, *Error for any other answer of
// containerd; those of img.Blob are wrapped. After each, a name stands for what
// it stood for before, and the next Import goes on.
func (s *Store) Import(ctx context.Context, img Image) error {
	n, err := parseReference(img.Reference)
	if err == nil {
		err = errors.Join(checkDigest(img.Digest), n.agrees(img.Digest))
	}
	if err != nil {
		return err
	}
	want, err := resolve(img, hostPlatform())
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
	return c.store(ctx, img, n, want)
}

// store is stored, again where another import of the same image came to its end
// and ended the lease that both had.
func (c *session) store(ctx context.Context, img Image, n names, want *closure) error {
	for range 3 {
		if err := c.stored(ctx, img, n, want); !isLeaseGone(err) {
			return err
		}
	}
	return c.stored(ctx, img, n, want)
}

func (c *session) stored(ctx context.Context, img Image, n names, want *closure) error {
	leased, release, err := c.lease(ctx, img.Digest)
	if err != nil {
		return err
	}
	if err := c.upload(leased, img, want); err != nil {
		return err
	}
	for _, name := range n.records(want) {
		if err := c.record(leased, name, want.target, img.labels()); err != nil {
			return err
		}
	}
	return release()
}

// records are the names to give, the one that pods use last.
func (n names) records(want *closure) []string {
	out := []string{want.config.Digest.String(), n.digested(want.target.Digest.String())}
	if n.tagged != "" {
		out = append(out, n.tagged)
	}
	return out
}

// upload sends layers and config side by side, then what refers to them: no
// manifest is there before what it needs.
func (c *session) upload(ctx context.Context, img Image, want *closure) error {
	g, side := errgroup.WithContext(ctx)
	g.SetLimit(uploads)
	for _, b := range want.leaves {
		u := &upload{session: c, blob: b, source: img.Blob}
		g.Go(func() error { return u.run(side) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, b := range want.parents {
		if err := (&upload{session: c, blob: b, source: img.Blob}).run(ctx); err != nil {
			return err
		}
	}
	return nil
}
