package imagestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc/codes"

	"github.com/berth-dev/berth/internal/oci"
)

// Has says whether a pod that names img.Reference would run without a pull; if
// not, why. The record must be there, of img.Digest unless that is empty, and all
// blobs behind it, and the image be pinned where it is to be: img.Source is not
// asked. It hardly waits: where containerd does
// not run, the error is a *NotRunningError at once, and where it is mute, after
// three seconds.
func (s *Store) Has(ctx context.Context, img Image) (ok bool, reason string, err error) {
	ref, err := oci.ParseImage(img.Reference)
	if err != nil {
		return false, "", err
	}
	c, err := s.open()
	if err != nil {
		return false, "", err
	}
	defer c.close()
	c.at = c.at.hasty()
	if err := c.glance(ctx); err != nil {
		return false, "", err
	}
	reason, err = c.lacks(ctx, ref, img)
	return reason == "" && err == nil, reason, err
}

// lacks says what differs from the image as wanted; "" if nothing does.
func (c *session) lacks(ctx context.Context, ref oci.Reference, img Image) (string, error) {
	have, err := c.lookup(ctx, ref.Pulled())
	if err != nil {
		return "", err
	}
	if have == nil {
		return "absent", nil
	}
	got := have.Target.GetDigest()
	switch {
	case img.Digest != "" && got != img.Digest:
		return fmt.Sprintf("digest %s, want %s", got, img.Digest), nil
	case agrees(ref, got) != nil:
		return fmt.Sprintf("digest %s, want %s", got, ref.Digest), nil
	}
	if reason, err := c.incomplete(ctx, got); err != nil || reason != "" {
		return reason, err
	}
	if img.Pinned && have.Labels[pinnedKey] != pinnedValue {
		return unpinned, nil
	}
	return "", nil
}

// unpinned is what an image lacks that is there and whole.
const unpinned = "kubelet may remove it"

// incomplete says which blob containerd lacks, or why the image does not serve
// here; "" if it is whole.
func (c *session) incomplete(ctx context.Context, digest string) (string, error) {
	var gone *goneError
	have, err := resolve(ctx, c, digest)
	if errors.As(err, &gone) || oci.IsContent(err) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	for _, b := range have.leaves {
		ok, err := c.holds(ctx, b)
		if err != nil {
			return "", err
		}
		if !ok {
			return c.unlessUnpacked(ctx, have, (&goneError{b.Digest.String()}).Error())
		}
	}
	return "", nil
}

// unlessUnpacked forgives a missing layer where the image has a snapshot:
// containerd can be told to discard layers that it has unpacked.
func (c *session) unlessUnpacked(ctx context.Context, have *closure, reason string) (string, error) {
	err := c.call(ctx, "look for snapshot", func(ctx context.Context) error {
		r, err := c.content.Info(ctx, &contentapi.InfoRequest{Digest: have.config.Digest.String()})
		for k := range r.GetInfo().GetLabels() {
			if strings.HasPrefix(k, "containerd.io/gc.ref.snapshot.") {
				reason = ""
			}
		}
		return err
	})
	return reason, err
}

// goneError is a blob that containerd lacks.
type goneError struct{ digest string }

// Error names it.
func (e *goneError) Error() string { return "blob " + e.digest + " is missing" }

// holds says whether containerd has a blob, of the right size.
func (c *session) holds(ctx context.Context, b blob) (ok bool, err error) {
	err = c.call(ctx, "look for blob "+b.Digest.String(), func(ctx context.Context) error {
		r, err := c.content.Info(ctx, &contentapi.InfoRequest{Digest: b.Digest.String()})
		if isCode(err, codes.NotFound) {
			return nil
		}
		ok = r.GetInfo().GetSize() == b.Size
		return err
	})
	return ok, err
}

// Open implements oci.Source for the small blobs that containerd has.
func (c *session) Open(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	var b bytes.Buffer
	err := c.call(ctx, "read blob "+d.Digest.String(), func(ctx context.Context) error {
		b.Reset()
		return c.readInto(ctx, &b, d.Digest.String())
	})
	return io.NopCloser(&b), err
}

// readInto reads what is so small that it needs no more time than any answer.
func (c *session) readInto(ctx context.Context, b *bytes.Buffer, digest string) error {
	bounded, cancel := context.WithTimeout(ctx, c.at.answer)
	defer cancel()
	return c.unheard(ctx, bounded, c.readStream(bounded, b, digest))
}

func (c *session) readStream(ctx context.Context, b *bytes.Buffer, digest string) error {
	stream, err := c.content.Read(ctx, &contentapi.ReadContentRequest{Digest: digest, Size: oci.MaxConfig + 1})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isCode(err, codes.NotFound):
			return &goneError{digest}
		case err != nil:
			return err
		case b.Len()+len(m.Data) > oci.MaxConfig+1:
			return &oci.ManifestError{What: "blob " + digest, Err: errors.New("too large")}
		}
		b.Write(m.Data)
	}
}
