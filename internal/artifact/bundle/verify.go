package bundle

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/oci"
)

// Report is what was verified. Its keys are part of the command's interface.
type Report struct {
	// KeyID is the signer's, "" if there is none. Trusted says that the signature
	// was verified with a key that was given.
	KeyID   string `json:"keyID,omitempty"`
	Trusted bool   `json:"trusted"`
	// Artifacts, Images and Blobs are how many there are, Bytes what the blobs
	// have together.
	Platform  string `json:"platform"`
	Artifacts int    `json:"artifacts"`
	Images    int    `json:"images"`
	Blobs     int    `json:"blobs"`
	Bytes     int64  `json:"bytes"`
}

// Verify reads the whole bundle: the signature if keys are given, each blob's
// digest, that each image has all its manifests, its configuration and layers,
// and that nothing is in it that belongs to none of them. Several altered blobs
// are all named. Errors: those of Authenticate, *BlobError, *ImageError,
// *StrayError, or the reader's.
func (b *Bundle) Verify(ctx context.Context, keys []ed25519.PublicKey) (Report, error) {
	m := b.manifest
	r := Report{KeyID: b.KeyID(), Platform: m.Platform, Artifacts: len(m.Artifacts), Images: len(m.Images), Blobs: len(m.Blobs), Bytes: m.Bytes()}
	if err := b.Authenticate(keys); err != nil {
		return r, err
	}
	r.Trusted = len(keys) > 0
	belongs, err := b.closures(ctx)
	if err != nil {
		return r, err
	}
	return r, b.checkBlobs(ctx, belongs)
}

// closures goes through all images and says what each blob belongs to. It
// verifies the manifests that it reads: what an altered one says is no reason to
// miss a blob.
func (b *Bundle) closures(ctx context.Context) (map[string][]string, error) {
	belongs := map[string][]string{}
	for _, a := range b.manifest.Artifacts {
		d := "sha256:" + a.SHA256
		belongs[d] = append(belongs[d], "artifact "+a.Name)
	}
	for _, i := range b.manifest.Images {
		err := (&members{b, "image " + i.Reference, belongs}).closure(ctx, i.descriptor())
		if altered, ok := errors.AsType[*oci.DigestError](err); ok {
			return nil, &BlobError{Digest: altered.Want, Got: strings.TrimPrefix(altered.Got, "sha256:"), Of: belongs[altered.Want]}
		}
		if oci.IsContent(err) {
			return nil, &ImageError{i.Reference, err}
		}
		if err != nil {
			return nil, err
		}
	}
	for _, blob := range b.manifest.Blobs {
		if len(belongs[blob.Digest]) == 0 {
			return nil, &StrayError{blob.Digest}
		}
	}
	return belongs, nil
}

// members are the blobs that belong to one image.
type members struct {
	*Bundle
	name    string
	belongs map[string][]string
}

func (m *members) closure(ctx context.Context, root ocispec.Descriptor) error {
	content, err := oci.Walk(ctx, m, root, oci.PlatformOf(m.manifest.Platform))
	if err != nil {
		return err
	}
	_, leaves, err := content.Parts(ctx)
	for _, d := range leaves {
		if err == nil {
			err = m.has(d)
		}
	}
	return err
}

// Open implements oci.Source.
func (m *members) Open(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	if err := m.has(d); err != nil {
		return nil, err
	}
	s, err := m.Blob(d.Digest.String())
	return io.NopCloser(s), err
}

// has says whether what the image needs is there in its size.
func (m *members) has(d ocispec.Descriptor) error {
	digest := d.Digest.String()
	if !slices.Contains(m.belongs[digest], m.name) {
		m.belongs[digest] = append(m.belongs[digest], m.name)
	}
	p, ok := m.blobs[digest]
	if !ok {
		return &BlobError{Digest: digest, Of: []string{m.name}}
	}
	if p.size != d.Size {
		return &oci.SizeError{What: "blob " + digest, Want: d.Size, Got: p.size}
	}
	return nil
}

func compare(digest string, sum []byte, belongs map[string][]string) error {
	if got := hex.EncodeToString(sum); "sha256:"+got != digest {
		return &BlobError{Digest: digest, Got: got, Of: belongs[digest]}
	}
	return nil
}

// checkBlobs hashes all blobs, as many at once as there are processors.
func (b *Bundle) checkBlobs(ctx context.Context, belongs map[string][]string) error {
	errs := make([]error, len(b.manifest.Blobs))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, blob := range b.manifest.Blobs {
		g.Go(func() error {
			errs[i] = b.checkBlob(ctx, blob.Digest, belongs)
			return nil
		})
	}
	_ = g.Wait() // no function returns one
	if ctx.Err() != nil {
		return fmt.Errorf("verify: %w", context.Cause(ctx))
	}
	return errors.Join(errs...)
}

func (b *Bundle) checkBlob(ctx context.Context, digest string, belongs map[string][]string) error {
	if ctx.Err() != nil {
		return nil // checkBlobs says it once
	}
	s, err := b.Blob(digest)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, &interruptible{ctx, s}, make([]byte, copySize)); err != nil {
		return fmt.Errorf("read blob %s: %w", digest, err)
	}
	return compare(digest, sum.Sum(nil), belongs)
}
