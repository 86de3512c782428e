package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/desired"
)

// asks is how often a registry is asked the same for an image: over some 80 s.
const asks = 12

// RemoteImage is a container image in a registry.
type RemoteImage struct {
	// Digest is that of its manifest or index, as the registry has it now.
	Digest string
	// Named: the reference names the digest.
	Named bool

	ctx    context.Context
	source bundle.ImageSource
	from   string

	mu sync.Mutex
	// parts are the descriptors of what the manifests that were read list.
	parts map[string]ocispec.Descriptor
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
	held, err := bundle.RegistryImage(f.registries.by(client, via, f.opt.Arch), strings.TrimPrefix(ref.String(), oci.Scheme), asks)
	if err != nil {
		return nil, err
	}
	i := &RemoteImage{ctx: ctx, source: held, from: ref.String(), Named: ref.Digest != ""}
	root, err := held.Root(ctx)
	if err != nil {
		return nil, i.failed(err)
	}
	i.Digest, i.parts = root.Digest.String(), map[string]ocispec.Descriptor{root.Digest.String(): root}
	return i, nil
}

// Blob opens a part of the image that a manifest lists which was read before, and
// says how many bytes it has.
func (i *RemoteImage) Blob(digest string) (io.ReadCloser, int64, error) {
	d, err := i.part(digest)
	if err != nil {
		return nil, 0, err
	}
	in, err := i.source.Open(i.ctx, d)
	if err != nil {
		return nil, 0, i.failed(err)
	}
	if !oci.IsIndex(d.MediaType) && !oci.IsManifest(d.MediaType) {
		return &remoteBlob{in, i}, d.Size, nil
	}
	defer in.Close()
	return i.manifest(in)
}

// manifest reads a manifest and learns what it lists. One that can't be read
// lists nothing: whoever asked for it says what is wrong.
func (i *RemoteImage) manifest(in io.Reader) (io.ReadCloser, int64, error) {
	raw, err := io.ReadAll(in)
	if err != nil {
		return nil, 0, i.failed(err)
	}
	var doc struct {
		Manifests []ocispec.Descriptor `json:"manifests"`
		Config    ocispec.Descriptor   `json:"config"`
		Layers    []ocispec.Descriptor `json:"layers"`
	}
	if json.Unmarshal(raw, &doc) == nil {
		i.learn(append(append(doc.Manifests, doc.Layers...), doc.Config))
	}
	return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
}

func (i *RemoteImage) learn(parts []ocispec.Descriptor) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range parts {
		i.parts[d.Digest.String()] = d
	}
}

func (i *RemoteImage) part(digest string) (ocispec.Descriptor, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d, ok := i.parts[digest]
	if !ok {
		return d, fmt.Errorf("%s: no manifest of it lists %s", i.from, digest)
	}
	return d, nil
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
