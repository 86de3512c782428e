package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/oci"
)

// registryImage is an image in a registry.
type registryImage struct {
	client   *remote.Client
	ref      oci.Reference
	patience patience

	mu   sync.Mutex
	root *held
}

// held is a manifest that is in memory.
type held struct {
	descriptor ocispec.Descriptor
	raw        []byte
}

// RegistryImage is the image of a reference in its registry. What breaks off is
// continued, and a registry that is in trouble asked again: asks times the same
// where it gives nothing at all, with pauses that grow from half a second.
func RegistryImage(client *remote.Client, reference oci.Reference, asks uint) ImageSource {
	p := usual
	p.asks, reference.Registry = asks, strings.ToLower(reference.Registry)
	return &registryImage{client: client, ref: reference, patience: p}
}

// Local implements ImageSource.
func (*registryImage) Local() bool { return false }

// Root implements ImageSource. The registry is asked once: a tag may move.
func (i *registryImage) Root(ctx context.Context) (ocispec.Descriptor, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.root == nil {
		root, err := i.manifest(ctx, i.ref)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		i.root = &root
	}
	return i.root.descriptor, nil
}

func (i *registryImage) manifest(ctx context.Context, ref oci.Reference) (held, error) {
	return again(ctx, i.patience, func() (held, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, i.patience.manifest, fmt.Errorf("no whole answer in %s", i.patience.manifest))
		defer cancel()
		d, raw, err := i.client.Manifest(ctx, ref)
		return held{d, raw}, err
	})
}

// Open implements ImageSource.
func (i *registryImage) Open(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	root, err := i.Root(ctx)
	if err != nil {
		return nil, err
	}
	if d.Digest == root.Digest {
		return io.NopCloser(bytes.NewReader(i.root.raw)), nil
	}
	if oci.IsIndex(d.MediaType) || oci.IsManifest(d.MediaType) {
		ref := i.ref
		ref.Digest = d.Digest
		one, err := i.manifest(ctx, ref)
		return io.NopCloser(bytes.NewReader(one.raw)), err
	}
	if d.Size == 0 {
		return http.NoBody, nil
	}
	return &resumed{ctx: ctx, patience: i.patience, open: func(ctx context.Context, offset int64) (io.ReadCloser, int64, error) {
		return i.client.Blob(ctx, i.ref, d, offset)
	}}, nil
}
