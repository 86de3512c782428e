package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/exitcode"
)

// elfOf is the head of a program for amd64 or arm64.
func elfOf(arch string) string {
	b := bytes.Repeat([]byte{0}, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[18] = map[string]byte{"amd64": 0x3e, "arm64": 0xb7}[arch]
	return string(b) + "a program for " + arch
}

// shelf is a registry of one artifact, tool:1, that has a program for each of two
// architectures.
func shelf(t *testing.T) *httptest.Server {
	t.Helper()
	content, kind := map[string][]byte{}, map[string]string{}
	put := func(mediaType string, v any) ocispec.Descriptor {
		raw, ok := v.([]byte)
		if !ok {
			var err error
			if raw, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
		}
		d := digest.FromBytes(raw)
		content[d.String()], kind[d.String()] = raw, mediaType
		return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(raw))}
	}
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex}
	for _, arch := range []string{"amd64", "arm64"} {
		m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: put(ocispec.MediaTypeEmptyJSON, []byte("{}"))}
		m.Layers = []ocispec.Descriptor{put("application/octet-stream", []byte(elfOf(arch)))}
		d := put(m.MediaType, m)
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: arch}
		index.Manifests = append(index.Manifests, d)
	}
	tagged := put(index.MediaType, index)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if name == "1" {
			name = tagged.Digest.String()
		}
		w.Header().Set("Content-Type", kind[name])
		_, _ = w.Write(content[name])
	}))
	t.Cleanup(s.Close)
	return s
}

// TestBundleForAnother makes bundles for two architectures, one of which is not
// this machine's.
func TestBundleForAnother(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		s, server := newSite(t), shelf(t)
		e := &env{err: &bytes.Buffer{}, uid: os.Geteuid()}
		w := newWorkbench(e, s.h, s.path(arch), "linux/"+arch)
		o := fetching(e, "linux/"+arch)
		o.Client = server.Client()
		w.fetcher = artifact.New(o)
		a, err := parseArtifact(strings.Replace(server.URL, "https", "tool=oci", 1) + "/tool:1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t.Context(), bundle.Spec{Platform: "linux/" + arch, Artifacts: []bundle.ArtifactSpec{w.artifact(a)}}, nil); err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		w.close()
		err = withBundle(s.path(arch), func(b *bundle.Bundle) error {
			in, err := b.Blob(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(elfOf(arch)))))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, in)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		s.nothingLeft()
	}
}

// TestBundleRefusesForeign has a program for another machine in a file.
func TestBundleRefusesForeign(t *testing.T) {
	s := newSite(t)
	write(t, s.path("arm"), elfOf("arm64"))
	code, _, said := s.run(t.Context(), "create --artifact tool=@/arm --platform linux/amd64 -o @/x")
	if code != exitcode.Failed || !strings.Contains(said, "artifact tool is a program for arm64, and the bundle is for linux/amd64") {
		t.Errorf("code %d: %s", code, said)
	}
	s.must("create --artifact tool=@/arm --platform linux/arm64 -o @/x")
	s.nothingLeft()
}
