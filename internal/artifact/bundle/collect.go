package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/artifact/program"
	"github.com/berth-dev/berth/internal/oci"
)

// collection is the content that a bundle is made of.
type collection struct {
	platform string
	spool    Spool

	mu    sync.Mutex
	blobs map[string]*stored
}

// stored is content that can be read again; sum is its sha256 in hex, head its
// first bytes.
type stored struct {
	sum  string
	size int64
	head []byte
	open func(ctx context.Context) (io.ReadCloser, error)
	drop func() error
}

// add puts content into the collection; what is there already is kept.
func (c *collection) add(s *stored) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.blobs[s.sum]; ok {
		return s.free()
	}
	c.blobs[s.sum] = s
	return nil
}

func (c *collection) get(sum string) *stored {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blobs[sum]
}

func (s *stored) free() error {
	if s.drop == nil {
		return nil
	}
	drop := s.drop
	s.drop = nil
	return drop()
}

// drop frees all that is spooled.
func (c *collection) drop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, s := range c.blobs {
		errs = append(errs, s.free())
	}
	return errors.Join(errs...)
}

// list is the blobs as the manifest lists them.
func (c *collection) list() []Blob {
	all := []Blob{}
	for _, s := range c.blobs {
		all = append(all, Blob{"sha256:" + s.sum, s.size})
	}
	return all
}

// store learns digest and size of content and keeps it: local content is read
// through, other content spooled.
func (c *collection) store(ctx context.Context, p promise, content Content) (*stored, error) {
	m := &meter{sum: sha256.New()}
	pass := func(w io.Writer) error {
		in, err := content.Open(ctx)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.CopyBuffer(plainWriter{io.MultiWriter(m, w)}, &interruptible{ctx, in}, make([]byte, copySize))
		return err
	}
	s := &stored{open: content.Open, drop: content.Free}
	if content.Local {
		if err := pass(io.Discard); err != nil {
			return nil, errors.Join(err, s.free())
		}
	} else {
		kept, err := c.spool.Keep(pass)
		if err != nil {
			return nil, err
		}
		s.open = func(context.Context) (io.ReadCloser, error) { return kept.Open() }
		s.drop = kept.Drop
	}
	s.sum, s.size, s.head = m.hex(), m.n, m.head
	if err := p.check(s.sum, s.size); err != nil {
		return nil, errors.Join(err, s.free())
	}
	return s, c.add(s)
}

// meter counts, hashes, and keeps the first bytes.
type meter struct {
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	n    int64
	head []byte
}

// Write implements io.Writer.
func (m *meter) Write(p []byte) (int, error) {
	m.head = append(m.head, p[:min(len(p), program.HeadSize-len(m.head))]...)
	m.n += int64(len(p))
	return m.sum.Write(p)
}

func (m *meter) hex() string { return hex.EncodeToString(m.sum.Sum(nil)) }

// image gets one image: its manifests one after the other, then all layers at
// once.
func (c *collection) image(ctx context.Context, i ImageSpec) (Image, error) {
	ref, err := oci.ParseImage(i.Reference)
	if err != nil {
		return Image{}, &SpecError{err.Error()}
	}
	reference := ref.Complete()
	root, err := i.Source.Root(ctx)
	if err == nil {
		err = c.closure(ctx, i.Source, root)
	}
	switch {
	case oci.IsContent(err):
		return Image{}, &ImageError{reference, err}
	case err != nil:
		return Image{}, fmt.Errorf("image %s: %w", reference, err)
	}
	return Image{Reference: reference, Digest: root.Digest.String(), Size: root.Size, MediaType: root.MediaType}, nil
}

// closure gets all that the platform needs of an image.
func (c *collection) closure(ctx context.Context, from ImageSource, root ocispec.Descriptor) error {
	content, err := oci.Walk(ctx, from, root, oci.PlatformOf(c.platform))
	if err != nil {
		return err
	}
	metadata, leaves, err := content.Parts(ctx)
	if err != nil {
		return err
	}
	for _, p := range metadata {
		if err := c.keep(p); err != nil {
			return err
		}
	}
	g, all := errgroup.WithContext(ctx)
	g.SetLimit(fetches)
	for _, d := range leaves {
		g.Go(func() error { return c.layer(all, from, d) })
	}
	return g.Wait()
}

// keep keeps what was read into memory.
func (c *collection) keep(p oci.Part) error {
	return c.add(&stored{sum: p.Digest.Encoded(), size: p.Size, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(p.Raw)), nil
	}})
}

func promiseOf(d ocispec.Descriptor) promise {
	return promise{what: "blob " + d.Digest.String(), sum: d.Digest.Encoded(), from: "the image's manifest", size: d.Size, fixed: true}
}

// layer gets what is not looked into, unless it is there.
func (c *collection) layer(ctx context.Context, from ImageSource, d ocispec.Descriptor) error {
	if s := c.get(d.Digest.Encoded()); s != nil {
		p := promiseOf(d)
		return p.check(s.sum, s.size)
	}
	_, err := c.store(ctx, promiseOf(d), Content{Local: from.Local(), Open: func(ctx context.Context) (io.ReadCloser, error) {
		return from.Open(ctx, d)
	}})
	return err
}
