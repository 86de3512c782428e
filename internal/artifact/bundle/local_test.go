package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/berth-dev/berth/internal/oci"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// dockerArchive is what docker save writes: a configuration, layers of which one
// is a link to the other and one is compressed, and a list.
func dockerArchive(t *testing.T) []byte {
	t.Helper()
	config, err := json.Marshal(ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: "amd64"},
		RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{"a", "b", "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("third")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	link := entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "b/layer.tar", Linkname: "../a/layer.tar"}, nil}
	return pack(t, []entry{
		file("config.json", string(config)), file("./a/layer.tar", "layer"), link, file("c.tar.gz", packed.String()),
		file("manifest.json", `[{"Config":"config.json","RepoTags":["pause:3.10","registry.example/pause:3.10"],"Layers":["a/layer.tar","b/layer.tar","c.tar.gz"]}]`),
	})
}

func local(t *testing.T, raw []byte) *Local {
	t.Helper()
	files, err := Archive(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenLocal(files)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func bundleOf(t *testing.T, reference string, l *Local) *Bundle {
	t.Helper()
	s, err := l.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, create(t, Spec{Platform: "linux/amd64", Images: []ImageSpec{{reference, s}}}, nil))
	if _, err := b.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDockerArchive(t *testing.T) {
	l := local(t, dockerArchive(t))
	if got := l.Names(); !slices.Equal(got, []string{"docker.io/library/pause:3.10", pause}) {
		t.Errorf("%v", got)
	}
	b := bundleOf(t, "another.example/name:1", l)
	i, _ := b.FindImage("another.example/name:1")
	s, err := b.Blob(i.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var m ocispec.Manifest
	if err := json.NewDecoder(s).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if len(m.Layers) != 3 || m.Layers[0].Digest != m.Layers[1].Digest || m.Layers[2].MediaType != ocispec.MediaTypeImageLayerGzip || m.Layers[0].MediaType != ocispec.MediaTypeImageLayer {
		t.Errorf("%+v", m.Layers)
	}
}

func TestLayerType(t *testing.T) {
	for head, want := range map[string]string{
		"\x1f\x8b\x08\x00": ocispec.MediaTypeImageLayerGzip, "\x28\xb5\x2f\xfd": ocispec.MediaTypeImageLayerZstd, "file": ocispec.MediaTypeImageLayer, "": ocispec.MediaTypeImageLayer,
	} {
		if got := layerType([]byte(head)); got != want {
			t.Errorf("%q: %s", head, got)
		}
	}
}

// TestBundleIsASource: the images of a bundle go into another one.
func TestBundleIsASource(t *testing.T) {
	raw := create(t, sample(t), testKey(1))
	b := bundleOf(t, pause, local(t, raw))
	was, _ := open(t, raw).FindImage(pause)
	if now, _ := b.FindImage(pause); now != was {
		t.Errorf("%+v, want %+v", now, was)
	}
}

func TestLocalImageByName(t *testing.T) {
	l := newLayout(t)
	one, two := l.image("amd64", "one"), l.image("amd64", "two")
	one.Annotations, two.Annotations = map[string]string{ocispec.AnnotationRefName: "r.example/one:1"}, map[string]string{ocispec.AnnotationRefName: "latest"}
	index, err := json.Marshal(ocispec.Index{Manifests: []ocispec.Descriptor{one, two}})
	if err != nil {
		t.Fatal(err)
	}
	l.files[indexName] = &fstest.MapFile{Data: index}
	both, err := OpenLocal(l.files)
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]ocispec.Descriptor{"r.example/one:1": one, "x.example/any@" + two.Digest.String(): two} {
		s, err := both.Image(reference)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Root(t.Context()); err != nil || got.Digest != want.Digest {
			t.Errorf("%s: %v, %v", reference, got.Digest, err)
		}
	}
	for _, reference := range []string{"r.example/two:1", "r.example/one@sha256:" + sum(nil), "UP"} {
		if _, err := both.Image(reference); err == nil {
			t.Errorf("%s was found", reference)
		}
	}
}

func TestLocalRefuses(t *testing.T) {
	for want, files := range map[string]fstest.MapFS{
		"neither an OCI image layout":           {"x": {}},
		"layout without images":                 {layoutName: {}, indexName: {Data: []byte(`{"manifests":[]}`)}},
		"index.json: it is no JSON manifest":    {layoutName: {}, indexName: {Data: []byte(`x`)}},
		"file does not exist":                   {layoutName: {}},
		"larger than 4 MiB":                     {layoutName: {}, indexName: {Data: make([]byte, oci.MaxManifest+1)}},
		"manifest.json: invalid":                {dockerName: {Data: []byte(`x`)}},
		"archive of docker save without images": {dockerName: {Data: []byte(`[]`)}},
		"open c.json":                           {dockerName: {Data: []byte(`[{"Config":"c.json"}]`)}},
		"open ../../etc/shadow: file":           {dockerName: {Data: []byte(`[{"Config":"../../etc/shadow"}]`)}},
		"open layer.tar: file does not exist":   {"c": {}, dockerName: {Data: []byte(`[{"Config":"c","Layers":["layer.tar"]}]`)}},
		`index.json: what leads to it says that it is application/vnd.oci.image.index.v1+json, and its content "text/plain"`: {layoutName: {}, indexName: {Data: []byte(`{"mediaType":"text/plain","manifests":[]}`)}},
	} {
		if _, err := OpenLocal(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, raw := range map[string]string{
		"compressed with gzip": "\x1f\x8b" + strings.Repeat("x", 1024), "it looks like JSON": "{}" + strings.Repeat(" ", 1024), "no tar that can be read": string(pack(t, []entry{file("x", "y")})[:512]),
	} {
		var l *LocalError
		if _, err := Archive(strings.NewReader(raw), int64(len(raw))); !errors.As(err, &l) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestArchiveLinksEnd(t *testing.T) {
	raw := pack(t, []entry{
		{tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "b"}, nil}, {tar.Header{Typeflag: tar.TypeSymlink, Name: "b", Linkname: "a"}, nil},
		file("c", "x"), {tar.Header{Typeflag: tar.TypeLink, Name: "d/e", Linkname: "c"}, nil},
	})
	files, err := Archive(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Open("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	f, err := files.Open("d/e")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

func FuzzLocal(f *testing.F) {
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		files, err := Archive(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		if l, err := OpenLocal(files); err == nil {
			_, _ = l.Image("r.example/x:1")
		}
	})
}
