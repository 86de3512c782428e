package imagestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// sample is an image in memory that counts what is read of it.
type sample struct {
	Image
	mu     sync.Mutex
	blobs  map[string][]byte
	read   map[string]int64
	opened map[string]int
	// broken bytes stand in for a blob; cut ends a blob's reader early.
	broken map[string][]byte
	cut    map[string]int64
	layers []string
	// at, if set, is told how much of a blob has been read.
	at func(digest string, read int64)
}

var errCut = errors.New("the source broke off")

// host is the platform of the tests' images.
var host = ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}

func newSample(ref string) *sample {
	s := &sample{blobs: map[string][]byte{}, read: map[string]int64{}, opened: map[string]int{}, broken: map[string][]byte{}, cut: map[string]int64{}}
	s.Reference, s.Source = ref, opener(s.open)
	return s
}

// single is an image of one manifest with layers of the given sizes; seed tells
// one image's bytes from another's.
func single(ref string, seed uint64, sizes ...int) *sample {
	s := newSample(ref)
	s.Digest = s.addManifest(host, seed, sizes...).Digest.String()
	return s
}

// multi is an image of an index: the host's platform is the second of three, the
// others' blobs are nowhere.
func multi(ref string, seed uint64, sizes ...int) *sample {
	s := newSample(ref)
	mine := s.addManifest(host, seed, sizes...)
	mine.Platform = &host
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{
		{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("s390x"), Size: 5, Platform: &ocispec.Platform{OS: "linux", Architecture: "s390x"}},
		mine,
		{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("proof"), Size: 5, Platform: &ocispec.Platform{OS: "unknown", Architecture: "unknown"}},
	}}
	index.SchemaVersion = 2
	s.Digest = s.addJSON(ocispec.MediaTypeImageIndex, index).Digest.String()
	return s
}

func (s *sample) addManifest(p ocispec.Platform, seed uint64, sizes ...int) ocispec.Descriptor {
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest}
	m.SchemaVersion = 2
	config := ocispec.Image{Platform: p}
	config.RootFS.Type = "layers"
	config.Author = fmt.Sprint("seed ", seed)
	for i, n := range sizes {
		raw := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(i)}).Read(raw) // it never fails
		d := s.add(ocispec.MediaTypeImageLayer, raw)
		m.Layers = append(m.Layers, d)
		s.layers = append(s.layers, d.Digest.String())
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, d.Digest)
	}
	m.Config = s.addJSON(ocispec.MediaTypeImageConfig, config)
	return s.addJSON(m.MediaType, m)
}

func (s *sample) addJSON(mediaType string, v any) ocispec.Descriptor {
	raw, err := json.Marshal(v)
	must(err)
	return s.add(mediaType, raw)
}

func (s *sample) add(mediaType string, raw []byte) ocispec.Descriptor {
	d := digest.FromBytes(raw)
	s.blobs[d.String()] = raw
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(raw))}
}

func (s *sample) size() (n int64) {
	for _, b := range s.blobs {
		n += int64(len(b))
	}
	return n
}

// opener is a source that is a function.
type opener func(digest string) (io.ReadCloser, error)

func (o opener) Open(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	return o(d.Digest.String())
}

func (s *sample) open(digest string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("no blob %s", digest)
	}
	if b, ok := s.broken[digest]; ok {
		raw = b
	}
	s.opened[digest]++
	r := &reader{Reader: bytes.NewReader(raw), of: s, digest: digest, left: int64(len(raw)) + 1}
	if cut, ok := s.cut[digest]; ok {
		r.left = cut
	}
	return r, nil
}

// layerReads is how many times a layer was opened, and how many of its bytes
// were read.
func (s *sample) layerReads() (opened int, read int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.layers {
		opened += s.opened[d]
		read += s.read[d]
	}
	return opened, read
}

type reader struct {
	*bytes.Reader
	of     *sample
	digest string
	left   int64
}

func (r *reader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errCut
	}
	n, err := r.Reader.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.of.mu.Lock()
	r.of.read[r.digest] += int64(n)
	read := r.of.read[r.digest]
	r.of.mu.Unlock()
	if r.of.at != nil {
		r.of.at(r.digest, read)
	}
	return n, err
}

func (r *reader) WriteTo(io.Writer) (int64, error) { panic("readers are read") }
func (r *reader) Close() error                     { return nil }
