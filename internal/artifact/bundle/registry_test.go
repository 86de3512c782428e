package bundle

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/oci"
)

// registry serves a layout. It is in trouble at first, and breaks each layer off
// once in its middle.
type registry struct {
	layout *layout
	root   ocispec.Descriptor

	mu      sync.Mutex
	trouble int
	broken  map[string]bool
	asked   []string
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, req.URL.Path)
	if r.trouble > 0 {
		r.trouble--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, name, _ := strings.Cut(req.URL.Path, "/v2/team/pause/")
	kind, digest, _ := strings.Cut(name, "/")
	if digest == "3.10" {
		digest = r.root.Digest.String()
	}
	f, ok := r.layout.files[memberName(digest)]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if kind == "manifests" {
		w.Header().Set("Content-Type", r.mediaType(f.Data))
		_, _ = w.Write(f.Data)
		return
	}
	r.blob(w, req, digest, f.Data)
}

func (r *registry) mediaType(raw []byte) string {
	if strings.Contains(string(raw), `"manifests"`) {
		return ocispec.MediaTypeImageIndex
	}
	return ocispec.MediaTypeImageManifest
}

func (r *registry) blob(w http.ResponseWriter, req *http.Request, digest string, raw []byte) {
	start := 0
	if _, err := fmt.Sscanf(req.Header.Get("Range"), "bytes=%d-", &start); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(raw)-1, len(raw)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)-start))
	if start > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	if !r.broken[digest] {
		r.broken[digest] = true
		_, _ = w.Write(raw[:len(raw)/2])
		return // shorter than promised: the connection is cut
	}
	_, _ = w.Write(raw[start:])
}

func serve(t *testing.T, trouble int) (*registry, *remote.Client, string) {
	t.Helper()
	l := newLayout(t)
	r := &registry{layout: l, root: l.index(l.image("arm64", "for arm"), l.image("amd64", "layer one", "layer two")), trouble: trouble, broken: map[string]bool{}}
	s := httptest.NewTLSServer(r)
	t.Cleanup(s.Close)
	return r, &remote.Client{HTTP: s.Client()}, strings.TrimPrefix(s.URL, "https://") + "/team/pause:3.10"
}

func registryImageOf(t *testing.T, client *remote.Client, text string) ImageSource {
	t.Helper()
	ref, err := oci.ParseImage(text)
	if err != nil {
		t.Fatal(err)
	}
	return RegistryImage(client, ref, Asks)
}

func TestRegistryImage(t *testing.T) {
	r, client, reference := serve(t, 1)
	source := registryImageOf(t, client, reference)
	raw := create(t, Spec{Platform: "linux/amd64", Images: []ImageSpec{{reference, source}}}, nil)
	b := open(t, raw)
	if _, err := b.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if i, ok := b.FindImage(reference); !ok || i.Digest != r.root.Digest.String() {
		t.Errorf("%+v", i)
	}
	if strings.Contains(string(raw), "for arm") {
		t.Error("another platform's layer was fetched")
	}
}

func TestRegistryImageFails(t *testing.T) {
	_, client, reference := serve(t, 0)
	absent := strings.Replace(reference, "3.10", "3.11", 1)
	_, err := Create(t.Context(), Spec{Platform: "linux/amd64", Images: []ImageSpec{{absent, registryImageOf(t, client, absent)}}}, &memorySpool{t: t}, nil, &full{1 << 20})
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v, want 404", err)
	}
	_, client, reference = serve(t, 0)
	source := registryImageOf(t, client, reference)
	spool := &memorySpool{t: t}
	if _, err := Create(t.Context(), Spec{Platform: "linux/s390x", Images: []ImageSpec{{reference, source}}}, spool, nil, &full{1 << 20}); err == nil || spool.kept != 0 {
		t.Error(err)
	}
}
