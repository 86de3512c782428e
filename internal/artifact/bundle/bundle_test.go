package bundle

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var update = flag.Bool("update", false, "write goldens")

// testKey is a key that is the same in every run.
func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey {
	p, _ := k.Public().(ed25519.PublicKey)
	return p
}

// memorySpool is a Spool that counts what it keeps.
type memorySpool struct {
	t    *testing.T
	mu   sync.Mutex
	kept int
}

type memoryKept struct {
	spool *memorySpool
	text  []byte
}

func (s *memorySpool) Keep(write func(io.Writer) error) (Kept, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept++
	return &memoryKept{s, b.Bytes()}, nil
}

func (k *memoryKept) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(k.text)), nil }

func (k *memoryKept) Drop() error {
	k.spool.mu.Lock()
	defer k.spool.mu.Unlock()
	if k.text == nil {
		k.spool.t.Error("dropped twice")
	}
	k.text = nil
	k.spool.kept--
	return nil
}

func content(text string, local bool) Content {
	return Content{Local: local, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// layout is an OCI image layout that is made piece by piece.
type layout struct {
	t     *testing.T
	files fstest.MapFS
}

func newLayout(t *testing.T) *layout {
	return &layout{t, fstest.MapFS{layoutName: {Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}}
}

func (l *layout) blob(mediaType string, v any) ocispec.Descriptor {
	raw, ok := v.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			l.t.Fatal(err)
		}
	}
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	l.files[memberName(d.Digest.String())] = &fstest.MapFile{Data: raw}
	return d
}

// image adds an image of some layers for an architecture.
func (l *layout) image(arch string, layers ...string) ocispec.Descriptor {
	config := ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: arch}}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Layers: []ocispec.Descriptor{}}
	m.SchemaVersion = 2
	for _, text := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromString(text))
		m.Layers = append(m.Layers, l.blob(ocispec.MediaTypeImageLayer, []byte(text)))
	}
	m.Config = l.blob(ocispec.MediaTypeImageConfig, config)
	d := l.blob(m.MediaType, m)
	d.Platform = &config.Platform
	return d
}

func (l *layout) index(of ...ocispec.Descriptor) ocispec.Descriptor {
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: of}
	index.SchemaVersion = 2
	return l.blob(index.MediaType, index)
}

// tagged finishes the layout with one named image.
func (l *layout) tagged(name string, d ocispec.Descriptor) *layout {
	d.Platform = nil
	d.Annotations = map[string]string{containerdName: name}
	index := ocispec.Index{Manifests: []ocispec.Descriptor{d}}
	index.SchemaVersion = 2
	raw, err := json.Marshal(index)
	if err != nil {
		l.t.Fatal(err)
	}
	l.files[indexName] = &fstest.MapFile{Data: raw}
	return l
}

func (l *layout) source(reference string) ImageSource {
	l.t.Helper()
	local, err := OpenLocal(l.files)
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := local.Image(reference)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

const pause = "registry.example/pause:3.10"

// sample is a bundle with a bit of everything: an artifact that is spooled, one
// that is local, an image behind an index of two platforms.
func sample(t *testing.T) Spec {
	l := newLayout(t)
	attestation := l.image("amd64", "attestation")
	attestation.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
	l.tagged(pause, l.index(l.image("arm64", "for arm"), l.image("amd64", "layer one", "layer two"), attestation))
	return Spec{
		Platform: "linux/amd64",
		Artifacts: []ArtifactSpec{
			{Name: "runc", Version: "v1.4.3", URLs: []string{"https://user:secret@example.com/runc?sig=secret"}, Content: content("runc", false)},
			{Name: "kubernetes", Version: "1.36.3", Content: content("kubernetes", true), URLs: []string{
				"https://mirror.example/k8s.tar.gz#sha256=" + sum([]byte("kubernetes")), "https://example.com/k8s.tar.gz"}},
		},
		Images: []ImageSpec{{Reference: pause, Source: l.source(pause)}},
	}
}

func create(t *testing.T, spec Spec, signer ed25519.PrivateKey) []byte {
	t.Helper()
	var b bytes.Buffer
	spool := &memorySpool{t: t}
	if _, err := Create(t.Context(), spec, spool, signer, &b); err != nil {
		t.Fatal(err)
	}
	if spool.kept != 0 {
		t.Errorf("%d spooled contents are left", spool.kept)
	}
	return b.Bytes()
}

func open(t *testing.T, raw []byte) *Bundle {
	t.Helper()
	b, err := Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCreateIsDeterministic(t *testing.T) {
	spec := sample(t)
	one := create(t, spec, testKey(1))
	spec.Artifacts[0], spec.Artifacts[1] = spec.Artifacts[1], spec.Artifacts[0]
	if !bytes.Equal(one, create(t, spec, testKey(1))) {
		t.Error("the same content made other bytes")
	}
	raw := open(t, one).raw
	const golden = "testdata/manifest.json"
	if *update {
		if err := os.WriteFile(golden, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(raw)); d != "" {
		t.Errorf("manifest (-golden +now):\n%s", d)
	}
	if strings.Contains(string(one), "secret") || strings.Contains(string(one), "for arm") {
		t.Error("the bundle holds what it should not")
	}
}

func TestVerify(t *testing.T) {
	b := open(t, create(t, sample(t), testKey(1)))
	got, err := b.Verify(t.Context(), []ed25519.PublicKey{public(testKey(2)), public(testKey(1))})
	want := Report{KeyID: KeyID(public(testKey(1))), Trusted: true, Platform: "linux/amd64", Artifacts: 2, Images: 1, Blobs: 7, Bytes: b.manifest.Bytes()}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if got, err = b.Verify(t.Context(), nil); err != nil || got.Trusted {
		t.Errorf("%v, %+v", err, got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err = b.Verify(ctx, nil); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	b := open(t, create(t, sample(t), nil))
	for url, want := range map[string]string{
		"https://example.com/k8s.tar.gz": "kubernetes", "https://EXAMPLE.com/runc?other": "runc", "https://example.com/other": "",
		"https://mirror.example/k8s.tar.gz#sha256=" + strings.ToUpper(sum([]byte("kubernetes"))): "kubernetes",
		"https://mirror.example/k8s.tar.gz#sha256=" + sum([]byte("x")):                           "", "ftp://example.com/runc": "",
	} {
		if got, ok := b.Find(url); got.Name != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", url, got.Name, ok)
		}
	}
	if _, ok := b.FindVersion("runc", "v1.4.3", "amd64"); !ok {
		t.Error("not found by version")
	}
	for _, c := range [][3]string{{"runc", "1.4.3", "arm64"}, {"runc", "1.4.2", "amd64"}, {"runc", "", "amd64"}, {"x", "1.4.3", "amd64"}} {
		if a, ok := b.FindVersion(c[0], c[1], c[2]); ok {
			t.Errorf("%v: found %+v", c, a)
		}
	}
	if a, ok := b.FindOnly("runc", "amd64"); !ok || a.Version != "1.4.3" {
		t.Errorf("the only one of its name: %+v, %v", a, ok)
	}
	for _, c := range [][2]string{{"runc", "arm64"}, {"x", "amd64"}} {
		if a, ok := b.FindOnly(c[0], c[1]); ok {
			t.Errorf("%v: found %+v", c, a)
		}
	}
	twice := sample(t)
	for i := range twice.Artifacts {
		twice.Artifacts[i].Name = "runc"
	}
	if a, ok := open(t, create(t, twice, nil)).FindOnly("runc", "amd64"); ok {
		t.Errorf("one of two: %+v", a)
	}
	if i, ok := b.FindImage(pause); !ok || i.Size == 0 {
		t.Error("no image")
	}
	if _, ok := b.FindImage("NO"); ok {
		t.Error("found nonsense")
	}
	a, _ := b.Find("https://example.com/runc")
	for _, name := range []string{a.SHA256, "sha256:" + a.SHA256} {
		s, err := b.Blob(name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := io.ReadAll(s); err != nil || string(raw) != "runc" {
			t.Errorf("%v, %q", err, raw)
		}
	}
	var missing *BlobError
	if _, err := b.Blob(sum(nil)); !errors.As(err, &missing) || missing.Got != "" {
		t.Error(err)
	}
}

func TestAuthenticate(t *testing.T) {
	signed, plain := open(t, create(t, sample(t), testKey(1))), open(t, create(t, sample(t), nil))
	forged := *signed
	forged.raw = append([]byte(" "), signed.raw...)
	keys := []ed25519.PublicKey{public(testKey(1))}
	var unsigned *UnsignedError
	var untrusted *UntrustedError
	var altered *SignatureError
	if err := plain.Authenticate(keys); !errors.As(err, &unsigned) {
		t.Error(err)
	}
	if err := signed.Authenticate([]ed25519.PublicKey{public(testKey(3))}); !errors.As(err, &untrusted) || untrusted.KeyID != KeyID(keys[0]) || len(untrusted.Trusted) != 1 {
		t.Error(err)
	}
	if err := forged.Authenticate(keys); !errors.As(err, &altered) {
		t.Error(err)
	}
	for _, err := range []error{signed.Authenticate(keys), signed.Authenticate(nil), plain.Authenticate(nil)} {
		if err != nil {
			t.Error(err)
		}
	}
}
