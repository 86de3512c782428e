package imagestore

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestResolve(t *testing.T) {
	img := multi("a", 1, 10, 20)
	c, err := resolve(img.Image, host)
	if err != nil {
		t.Fatal(err)
	}
	if c.target.Digest.String() != img.Digest || c.target.MediaType != ocispec.MediaTypeImageIndex || c.target.Size == 0 {
		t.Errorf("target %+v", c.target)
	}
	var leaves []string
	for _, b := range c.leaves {
		leaves = append(leaves, b.Digest.String())
	}
	if diff := cmp.Diff(append(slices.Clone(img.layers), c.config.Digest.String()), leaves); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"containerd.io/gc.ref.content.config": c.config.Digest.String(),
		"containerd.io/gc.ref.content.l.0": img.layers[0], "containerd.io/gc.ref.content.l.1": img.layers[1]}
	if diff := cmp.Diff(want, c.parents[0].labels); diff != "" || len(c.parents) != 2 || c.parents[1].Digest.String() != img.Digest {
		t.Error(diff, c.parents)
	}
}

// What can't run here is refused before containerd is asked.
func TestResolveRefuses(t *testing.T) {
	foreign := func() *sample {
		s := newSample("a")
		s.Digest = s.addManifest(ocispec.Platform{OS: "linux", Architecture: "s390x"}, 1, 10).Digest.String()
		return s
	}
	raw := func(text string) func() *sample {
		return func() *sample {
			s := newSample("a")
			s.Digest = s.add("", []byte(text)).Digest.String()
			return s
		}
	}
	for name, c := range map[string]struct {
		img func() *sample
		is  func(error) bool
		say string
	}{
		"foreign manifest": {foreign, is[*PlatformError], "is for linux/s390x, not for linux/"},
		"foreign index": {func() *sample {
			s := newSample("a")
			m := s.addManifest(ocispec.Platform{OS: "windows", Architecture: "amd64"}, 1)
			m.Platform = &ocispec.Platform{OS: "windows", Architecture: "amd64"}
			s.Digest = s.addJSON("", ocispec.Index{Manifests: []ocispec.Descriptor{m}}).Digest.String()
			return s
		}, is[*PlatformError], "is for windows/amd64, not"},
		"broken manifest": {func() *sample {
			s := single("a", 1)
			s.broken[s.Digest] = []byte("{}")
			return s
		}, is[*DigestError], s256},
		"no JSON":        {raw("<html>"), is[*ManifestError], "read"},
		"nothing":        {raw("{}"), is[*ManifestError], "neither a manifest nor an index"},
		"both":           {raw(`{"manifests":[],"config":{},"layers":[]}`), is[*ManifestError], "neither"},
		"no config":      {raw(`{"layers":[]}`), is[*ManifestError], "no config"},
		"Docker's first": {raw(`{"fsLayers":[]}`), is[*ManifestError], "first schema"},
		"media type":     {raw(`{"mediaType":"` + dockerIndex + `","config":{},"layers":[]}`), is[*ManifestError], "media type"},
		"bad digest":     {raw(`{"config":{"digest":"md5:1"},"layers":[]}`), is[*ManifestError], "md5:1"},
		"path as digest": {raw(`{"manifests":[{"digest":"sha256:../../../etc/shadow","platform":null}]}`), is[*ManifestError], "etc/shadow"},
		"endless":        {raw(strings.Repeat(" ", maxManifest+1) + "{}"), is[*ManifestError], "more than"},
		"layers without config": {func() *sample {
			s := newSample("a")
			layer, config := s.add("", []byte("x")), s.addJSON("", ocispec.Image{Platform: host})
			s.Digest = s.addJSON("", ocispec.Manifest{Config: config, Layers: []ocispec.Descriptor{layer}}).Digest.String()
			return s
		}, is[*ManifestError], "1 layers, but its config knows of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := resolve(c.img().Image, host)
			if !c.is(err) || !strings.Contains(err.Error(), c.say) {
				t.Fatalf("%T: %v", err, err)
			}
		})
	}
}

const s256 = "sha256:"

func TestNestedIndex(t *testing.T) {
	s := multi("a", 1, 10)
	for i := range 3 {
		_, err := resolve(s.Image, host)
		if (err == nil) != (i < 3) {
			t.Fatalf("%d indexes around: %v", i, err)
		}
		d := ocispec.Descriptor{Digest: digest.Digest(s.Digest), Size: int64(len(s.blobs[s.Digest]))}
		s.Digest = s.addJSON("", ocispec.Index{Manifests: []ocispec.Descriptor{d}}).Digest.String()
	}
	if _, err := resolve(s.Image, host); !is[*ManifestError](err) {
		t.Fatalf("error %v", err)
	}
}

func TestDockerMediaTypes(t *testing.T) {
	s := newSample("a")
	d := s.addManifest(host, 1, 10)
	raw := strings.Replace(string(s.blobs[d.Digest.String()]), ocispec.MediaTypeImageManifest, dockerManifest, 1)
	s.Digest = s.add("", []byte(raw)).Digest.String()
	c, err := resolve(s.Image, host)
	if err != nil || c.target.MediaType != dockerManifest {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestRuns(t *testing.T) {
	amd, arm := ocispec.Platform{OS: "linux", Architecture: "amd64"}, ocispec.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}
	for _, c := range []struct {
		host, p ocispec.Platform
		want    bool
	}{
		{amd, amd, true}, {arm, arm, true}, {amd, arm, false},
		{amd, ocispec.Platform{OS: "linux", Architecture: "amd64", Variant: "v1"}, true},
		{amd, ocispec.Platform{OS: "linux", Architecture: "amd64", Variant: "v3"}, false},
		{arm, ocispec.Platform{OS: "linux", Architecture: "arm64"}, true},
		{amd, ocispec.Platform{OS: "windows", Architecture: "amd64"}, false},
	} {
		if runs(c.host, c.p) != c.want {
			t.Errorf("%s on %s: want %v", platformText(c.p), platformText(c.host), c.want)
		}
	}
}

func TestParseReference(t *testing.T) {
	d := "sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]names{
		"pause":                     {"docker.io/library/pause", "docker.io/library/pause:latest", ""},
		"mcr.microsoft.com/p:3.6":   {"mcr.microsoft.com/p", "mcr.microsoft.com/p:3.6", ""},
		"localhost:5000/a/b":        {"localhost:5000/a/b", "localhost:5000/a/b:latest", ""},
		"r.test/a@" + d:             {"r.test/a", "", d},
		"r.test/a:1@" + d:           {"r.test/a", "", d},
		"me/a:v1":                   {"docker.io/me/a", "docker.io/me/a:v1", ""},
		"docker.io/library/a:1.0.0": {"docker.io/library/a", "docker.io/library/a:1.0.0", ""},
	} {
		got, err := parseReference(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "A", "a b", "r.test/a@sha256:1", "r.test/a@sha512:" + strings.Repeat("a", 128), "sha256:" + strings.Repeat("a", 64) + "/"} {
		if got, err := parseReference(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	if err := (&Store{}).Import(t.Context(), Image{Reference: "r.test/a@" + d, Digest: "sha256:" + strings.Repeat("b", 64)}); !is[*DigestError](err) {
		t.Error(err)
	}
}

func FuzzParseDocument(f *testing.F) {
	s := multi("a", 1, 10)
	for _, b := range s.blobs {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, err := parseManifest(raw)
		if err != nil {
			return
		}
		if (doc.Config == nil) == (doc.Manifests == nil) || doc.MediaType == "" {
			t.Errorf("%+v", doc)
		}
		if _, err := json.Marshal(childLabels(doc)); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseReference(f *testing.F) {
	f.Add("pause:3.6")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseReference(text)
		if err != nil {
			return
		}
		if again, err := parseReference(n.main()); err != nil || again != n {
			t.Errorf("%q: %+v, then %+v, %v", text, n, again, err)
		}
	})
}
