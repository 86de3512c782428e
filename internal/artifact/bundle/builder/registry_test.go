package builder

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
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
