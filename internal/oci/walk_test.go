package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// memory is a source that notes what is opened.
type memory struct {
	t      testing.TB
	blobs  map[digest.Digest][]byte
	opened []digest.Digest
}

var errAbsent = errors.New("it is not here")

func (m *memory) Open(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	m.opened = append(m.opened, d.Digest)
	raw, ok := m.blobs[d.Digest]
	if !ok {
		return nil, errAbsent
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

func newMemory(t testing.TB) *memory { return &memory{t: t, blobs: map[digest.Digest][]byte{}} }

func (m *memory) add(mediaType string, content any) v1.Descriptor {
	raw, ok := content.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(content); err != nil {
			m.t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	m.blobs[d.Digest] = raw
	return d
}

// image has a platform as of entry; its layers are nowhere.
func (m *memory) image(platform string, layers ...string) v1.Descriptor {
	config, list := v1.Image{}, v1.Manifest{MediaType: v1.MediaTypeImageManifest}
	e := entry(platform)
	if e.Platform != nil {
		config.Platform = *e.Platform
	}
	for _, l := range layers {
		list.Layers = append(list.Layers, v1.Descriptor{Digest: digest.FromString(l), Size: int64(len(l))})
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromString(l))
	}
	list.Config = m.add(v1.MediaTypeImageConfig, config)
	d := m.add(list.MediaType, list)
	d.Platform = e.Platform
	return d
}

func (m *memory) index(entries ...v1.Descriptor) v1.Descriptor {
	return m.add(v1.MediaTypeImageIndex, v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: entries})
}

func (m *memory) walk(root v1.Descriptor) (*Content, error) {
	return Walk(m.t.Context(), m, root, Linux("amd64"))
}

// bare is all that is known of a root by its digest alone.
func bare(d v1.Descriptor) v1.Descriptor { return v1.Descriptor{Digest: d.Digest, Size: -1} }

func TestWalk(t *testing.T) {
	m := newMemory(t)
	image := m.image("linux/amd64", "one", "two")
	inner := m.index(m.image("linux/arm64", "other"), image)
	outer := m.index(inner)
	c, err := m.walk(bare(outer))
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.Image(t.Context())
	if err != nil || config.Digest != c.Config.Digest || len(config.Raw) == 0 {
		t.Errorf("%+v, %v", config, err)
	}
	if diff := cmp.Diff([]digest.Digest{outer.Digest, inner.Digest, image.Digest, c.Config.Digest}, m.opened); diff != "" {
		t.Errorf("opened:\n%s", diff)
	}
	if c.Root().MediaType != v1.MediaTypeImageIndex || c.Root().Size != outer.Size || c.Manifest().Digest != image.Digest || len(c.Layers) != 2 || !c.IsImage() {
		t.Errorf("%+v", c)
	}
	read, rest, err := c.Parts(t.Context())
	if err != nil || len(read) != 4 || len(rest) != 2 {
		t.Errorf("%d and %d parts, %v", len(read), len(rest), err)
	}
	for _, p := range read {
		if !bytes.Equal(p.Raw, m.blobs[p.Digest]) || p.Size != int64(len(p.Raw)) {
			t.Errorf("%+v", p.Descriptor)
		}
	}
}

func TestWalkOfAnArtifact(t *testing.T) {
	m := newMemory(t)
	file := v1.Descriptor{Digest: digest.FromString("x"), Size: 1, Annotations: map[string]string{v1.AnnotationTitle: "kubectl"}}
	artifact := func(files ...v1.Descriptor) *Content {
		c, err := m.walk(m.add("", v1.Manifest{Config: v1.DescriptorEmptyJSON, Layers: files}))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := artifact(file)
	if got, err := c.File(); err != nil || got.Digest != file.Digest || c.IsImage() || c.Fits(t.Context()) != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if read, rest, err := c.Parts(t.Context()); err != nil || len(read) != 1 || len(rest) != 2 {
		t.Errorf("%d and %d parts, %v", len(read), len(rest), err)
	}
	if _, err := artifact(file, file).File(); err == nil || !strings.Contains(err.Error(), `2 files, want one: "kubectl", "kubectl"`) {
		t.Errorf("%v", err)
	}
	if _, err := artifact().File(); err == nil || !strings.Contains(err.Error(), "0 files") {
		t.Errorf("%v", err)
	}
	image, err := m.walk(m.image("linux/amd64", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.File(); err == nil || !strings.Contains(err.Error(), "it is an image") {
		t.Errorf("%v", err)
	}
}

// TestWalkIsBounded: four indexes in one another are more than anybody makes.
func TestWalkIsBounded(t *testing.T) {
	m := newMemory(t)
	d := m.image("linux/amd64", "x")
	for indexes := range 6 {
		_, err := m.walk(d)
		if e, ok := errors.AsType[*ManifestError](err); (indexes > 4) != ok || ok && !strings.Contains(e.Error(), "more than 4 deep") {
			t.Errorf("%d indexes: %v", indexes, err)
		}
		d = m.index(d)
	}
}

func TestWalkRefuses(t *testing.T) {
	large := func(n int) []byte { return append(bytes.Repeat([]byte(" "), n), "{}"...) }
	for name, c := range map[string]struct {
		root func(*memory) v1.Descriptor
		want string
		is   any
	}{
		"sha512": {func(*memory) v1.Descriptor {
			return v1.Descriptor{Digest: digest.NewDigestFromEncoded(digest.SHA512, strings.Repeat("a", 128))}
		}, "not named by a sha256", new(*ManifestError)},
		"large":         {func(m *memory) v1.Descriptor { return m.add("", large(MaxManifest)) }, "more than the 4194304 of any real one", new(*ManifestError)},
		"large, unsaid": {func(m *memory) v1.Descriptor { return bare(m.add("", large(MaxManifest))) }, "more than the 4194304 bytes of any real one", new(*ManifestError)},
		"no manifest":   {func(m *memory) v1.Descriptor { return m.add("", []byte("{}")) }, "neither a manifest nor an index", new(*ManifestError)},
		"absent":        {func(m *memory) v1.Descriptor { return m.index(v1.Descriptor{Digest: someDigest, Size: 1}) }, "not here", new(error)},
		"foreign":       {func(m *memory) v1.Descriptor { return m.index(m.image("linux/arm64"), m.image("windows/amd64")) }, "not for linux/amd64; it is for linux/arm64, windows/amd64", new(*PlatformError)},
		"other type":    {func(m *memory) v1.Descriptor { d := m.image("linux/amd64"); d.MediaType = dockerList; return d }, "what leads to it says", new(*ManifestError)},
		"other size":    {func(m *memory) v1.Descriptor { d := m.image("linux/amd64"); d.Size++; return m.index(d) }, "bytes, want", new(*SizeError)},
		"altered":       {func(m *memory) v1.Descriptor { d := m.image("linux/amd64"); m.blobs[d.Digest][5] ^= 1; return d }, "(from the reference)", new(*DigestError)},
		"altered inside": {func(m *memory) v1.Descriptor {
			d := m.image("linux/amd64")
			m.blobs[d.Digest][5] ^= 1
			return m.index(d)
		}, "(from the index)", new(*DigestError)},
	} {
		m := newMemory(t)
		if _, err := m.walk(c.root(m)); err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, c.is) || IsContent(err) == errors.Is(err, errAbsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("given up")
	cancel(gone)
	m := newMemory(t)
	if _, err := Walk(ctx, m, m.image("linux/amd64"), Linux("amd64")); !errors.Is(err, gone) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestImage: an index may say what is not so, and no container could start.
func TestImage(t *testing.T) {
	for name, c := range map[string]struct {
		config func() any
		want   string
		// fits: files may be taken out of it all the same.
		fits bool
	}{
		"fine":         {func() any { return imageConfig("linux/amd64", 1) }, "", true},
		"foreign":      {func() any { return imageConfig("linux/arm64", 1) }, "not for linux/amd64; it is for linux/arm64", false},
		"for nobody":   {func() any { return imageConfig("", 1) }, "not for linux/amd64", true},
		"other layers": {func() any { return imageConfig("linux/amd64", 2) }, "1 layers, but its config knows of 2", true},
		"no JSON":      {func() any { return []byte("?") }, "no configuration of an image", false},
		"large":        {func() any { return bytes.Repeat([]byte(" "), MaxConfig+1) }, "more than the 8388608", false},
	} {
		m := newMemory(t)
		layer := v1.Descriptor{Digest: digest.FromString("x"), Size: 1}
		d := m.add("", v1.Manifest{Config: m.add(v1.MediaTypeImageConfig, c.config()), Layers: []v1.Descriptor{layer}})
		content, err := m.walk(d)
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = content.Image(t.Context())
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !IsContent(err)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := content.Fits(t.Context()); (err == nil) != c.fits {
			t.Errorf("%s fits: %v", name, err)
		}
		d.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
		if content, err = m.walk(m.index(d)); err != nil || content.Fits(t.Context()) != nil {
			t.Errorf("%s, in an index that names the platform: %v", name, err)
		}
	}
}

func imageConfig(platform string, layers int) v1.Image {
	config := v1.Image{}
	if e := entry(platform); e.Platform != nil {
		config.Platform = *e.Platform
	}
	for n := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromString(fmt.Sprint(n)))
	}
	return config
}
