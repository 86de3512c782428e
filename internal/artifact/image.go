package artifact

import (
	"context"
	"errors"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// asks is how often a registry is asked the same for an image: over some 80 s.
const asks = 12

// RemoteImage is a container image in a registry.
type RemoteImage struct {
	// Digest is that of its manifest or index, as the registry has it now.
	Digest string
	// Named: the reference names the digest.
	Named bool

	source bundle.ImageSource
	from   string
}

// Image asks the registry that source names ("oci://…") for its image, as Stage
// asks for an artifact. Errors: *RefusedError, *PullError.
func (f *Fetcher) Image(ctx context.Context, source string, via *desired.Egress) (*RemoteImage, error) {
	ref, err := oci.Parse(source)
	if err != nil {
		return nil, &RefusedError{URL: desired.BareURL(source), Reason: err.Error()}
	}
	if f.opt.RequireDigests && ref.Digest == "" {
		return nil, &RefusedError{URL: ref.String(), Reason: "it names no digest, and digests are required", NoDigest: true}
	}
	client, err := f.clients.by(f.opt.Client, via)
	if err != nil {
		return nil, err
	}
	held := bundle.RegistryImage(f.registries.by(client, via, &f.opt), ref, asks)
	i := &RemoteImage{source: held, from: ref.String(), Named: ref.Digest != ""}
	root, err := held.Root(ctx)
	if err != nil {
		return nil, i.failed(err)
	}
	i.Digest = root.Digest.String()
	return i, nil
}

// Open implements oci.Source.
func (i *RemoteImage) Open(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	in, err := i.source.Open(ctx, d)
	if err != nil {
		return nil, i.failed(err)
	}
	return &remoteBlob{in, i}, nil
}

// failed names the image. What helps who makes a bundle does not help a node.
func (i *RemoteImage) failed(err error) error {
	if e, ok := errors.AsType[*bundle.RegistryError](err); ok {
		err = e.Err
	}
	return &PullError{Source: i.from, Err: err}
}

// remoteBlob is a part of an image as it comes in.
type remoteBlob struct {
	io.ReadCloser
	of *RemoteImage
}

// Read implements io.Reader.
func (b *remoteBlob) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.of.failed(err)
	}
	return n, err
}
