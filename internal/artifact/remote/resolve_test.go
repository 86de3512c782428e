package remote

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

func TestResolveArtifact(t *testing.T) {
	r := newRegistry(t)
	d := r.addArtifact("v1", map[string]string{"kubelet": "k", "kubectl": "kk"})
	got, err := r.client().Resolve(t.Context(), r.ref(":v1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.IsImage() || got.Manifest().Digest != d.Digest || len(got.Layers) != 2 {
		t.Errorf("got %+v", got)
	}
	_, err = got.File()
	if e, ok := errors.AsType[*oci.ManifestError](err); !ok || !strings.Contains(e.Error(), `2 files, want one: "kube`) {
		t.Errorf("error is %v", err)
	}
	one := r.addArtifact("", map[string]string{"kubectl": "kk"})
	if got, err = r.client().Resolve(t.Context(), r.ref("@"+one.Digest.String())); err != nil {
		t.Fatal(err)
	}
	if l, err := got.File(); err != nil || l.Size != 2 || l.Annotations[v1.AnnotationTitle] != "kubectl" {
		t.Errorf("kubectl is %+v, %v", l, err)
	}
}

func TestResolveIndex(t *testing.T) {
	r := newRegistry(t)
	amd, v3 := r.addImage("", "linux/amd64", []byte("amd")), r.addImage("", "linux/amd64/v3", []byte("v3"))
	arm, windows := r.addImage("", "linux/arm64/v8", []byte("arm")), r.addImage("", "windows/amd64", []byte("win"))
	signature := r.addImage("", "unknown/unknown", []byte("sig"))
	index := r.addIndex("v1", v3, windows, signature, amd, arm)
	r.addIndex("outer", r.addIndex("", amd))
	for _, c := range []struct{ arch, tail, want, have string }{
		{"amd64", ":v1", amd.Digest.String(), ""},
		{"amd64", "@" + index.Digest.String(), amd.Digest.String(), ""},
		{"arm64", ":v1", arm.Digest.String(), ""},
		{"arm64", "@" + amd.Digest.String(), "", "linux/amd64"},
		{"riscv64", ":v1", "", "linux/amd64, linux/amd64/v3, linux/arm64/v8, windows/amd64"},
		{"amd64", ":outer", amd.Digest.String(), ""},
	} {
		client := r.client()
		client.Arch = c.arch
		got, err := client.Resolve(t.Context(), r.ref(c.tail))
		if c.want != "" {
			if err != nil || got.Manifest().Digest.String() != c.want || !got.IsImage() {
				t.Errorf("%s %s: %+v, %v", c.arch, c.tail, got, err)
			}
			continue
		}
		e, ok := errors.AsType[*oci.PlatformError](err)
		if !ok || strings.Join(e.Have, ", ") != c.have || !strings.Contains(err.Error(), "not for linux/"+c.arch) {
			t.Errorf("%s %s: %v", c.arch, c.tail, err)
		}
	}
}

// TestResolvePlatformOfImage is an image in no index: its configuration tells.
func TestResolvePlatformOfImage(t *testing.T) {
	r := newRegistry(t)
	r.addImage("arm", "linux/arm64", []byte("x"))
	r.addImage("any", "", []byte("x"))
	_, err := r.client().Resolve(t.Context(), r.ref(":arm"))
	if e, ok := errors.AsType[*oci.PlatformError](err); !ok || !cmp.Equal(e.Have, []string{"linux/arm64"}) {
		t.Errorf("error is %v", err)
	}
	if _, err := r.client().Resolve(t.Context(), r.ref(":any")); err != nil {
		t.Error(err)
	}
}

func TestResolveRefusesManifests(t *testing.T) {
	const good = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"no JSON":      {v1.MediaTypeImageManifest, "<html>", "it is no JSON manifest"},
		"a page":       {"text/html", `{}`, `its media type is "text/html"`},
		"schema 1":     {"application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1}`, "want an OCI or Docker (schema 2)"},
		"two types":    {v1.MediaTypeImageManifest, `{"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[{}]}`, "what leads to it says"},
		"both":         {v1.MediaTypeImageIndex, `{"manifests":[{"digest":"` + good + `"}],"layers":[{"digest":"` + good + `"}]}`, "1 layers and 1 manifests"},
		"empty index":  {v1.MediaTypeImageIndex, `{}`, "0 layers and 0 manifests"},
		"no digest":    {v1.MediaTypeImageManifest, `{"config":{"digest":"` + good + `"},"layers":[{"digest":"../../x"}]}`, `it lists "../../x", which is no digest`},
		"no config":    {v1.MediaTypeImageManifest, `{"layers":[]}`, "it has no config"},
		"bad size":     {v1.MediaTypeImageManifest, `{"config":{"digest":"` + good + `","size":-1}}`, "a size of -1 bytes"},
		"too large":    {v1.MediaTypeImageManifest, strings.Repeat(" ", oci.MaxManifest+1), "larger than 4 MiB"},
		"wrong shapes": {v1.MediaTypeImageManifest, `{"layers":"many"}`, "it is no JSON manifest"},
	} {
		r := newRegistry(t)
		r.addManifest("v1", c.mediaType, []byte(c.body))
		_, err := r.client().Resolve(t.Context(), r.ref(":v1"))
		e, ok := errors.AsType[*oci.ManifestError](err)
		if !ok || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(e.What, r.host()+"/team/tool: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is wrong with the inner parts names the registry, too.
func TestResolveNamesTheRegistry(t *testing.T) {
	r := newRegistry(t)
	r.addIndex("inner", r.addManifest("", v1.MediaTypeImageManifest, []byte(`{"layers":[]}`)))
	r.addIndex("foreign", r.addImage("", "linux/s390x", []byte("x")))
	for tag, want := range map[string]string{"inner": "it has no config", "foreign": "not for linux/amd64; it is for linux/s390x"} {
		_, err := r.client().Resolve(t.Context(), r.ref(":"+tag))
		if err == nil || !strings.HasPrefix(err.Error(), r.host()+"/team/tool: manifest sha256:") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

func TestResolveComparesDigests(t *testing.T) {
	r := newRegistry(t)
	d := r.addArtifact("v1", map[string]string{"x": "x"})
	image := r.addImage("", "linux/amd64", []byte("x"))
	index := r.addIndex("index", image)
	other := r.addArtifact("", map[string]string{"x": "evil"})
	evil, wrong := r.manifests[other.Digest.String()], someDigest.String()
	for name, c := range map[string]struct {
		tail, source string
		change       func()
		header       string
	}{
		"pinned":  {"@" + d.Digest.String(), "the reference", func() { r.manifests[d.Digest.String()] = evil }, ""},
		"header":  {":v1", "the registry's header", func() {}, wrong},
		"index":   {"@" + index.Digest.String(), "the index", func() { r.manifests[image.Digest.String()] = evil }, ""},
		"config":  {":image", "the manifest", func() { r.addImage("image", "linux/amd64"); corrupt(r.blobs) }, ""},
		"garbage": {":v1", "", func() {}, "hello"},
	} {
		manifests := map[string][]byte{}
		for k, v := range r.manifests {
			manifests[k] = v
		}
		c.change()
		if c.header != "" {
			r.answer = func(w http.ResponseWriter, req *http.Request) bool {
				r.manifest(&pinnedHeader{w, c.header}, req)
				return true
			}
		}
		_, err := r.client().Resolve(t.Context(), r.ref(c.tail))
		e, ok := errors.AsType[*oci.DigestError](err)
		if c.source == "" {
			if _, ok := errors.AsType[*oci.ManifestError](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		} else if !ok || !strings.Contains(e.Source, c.source) {
			t.Errorf("%s: %v", name, err)
		}
		r.manifests, r.answer = manifests, nil
	}
}

// corrupt changes each blob without its length.
func corrupt(blobs map[string][]byte) {
	for k, v := range blobs {
		blobs[k] = []byte(strings.Repeat("?", len(v)))
	}
}

// pinnedHeader sends a digest of its own.
type pinnedHeader struct {
	http.ResponseWriter
	digest string
}

func (p *pinnedHeader) Write(b []byte) (int, error) {
	p.Header().Set(digestHeader, p.digest)
	return p.ResponseWriter.Write(b)
}
