package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// fakeRegistry answers as a registry over TLS does.
type fakeRegistry struct {
	*httptest.Server
	t testing.TB
	// blobs and manifests are by digest; tags lead to digests, types are media
	// types of manifests.
	blobs, manifests map[string][]byte
	tags, types      map[string]string
	// noRange makes it ignore Range; auth is "", "token", "basic".
	noRange bool
	auth    string
	// user, password and refresh are what it knows its one user by.
	user, password, refresh string
	// answer may take over a request: it returns true if it did.
	answer func(http.ResponseWriter, *http.Request) bool

	mu   sync.Mutex
	seen []string
}

const goodToken = "eyJ0b2tlbiI6ImFjY2VzcyJ9.good.token"

func newRegistry(t testing.TB) *fakeRegistry {
	r := &fakeRegistry{t: t, blobs: map[string][]byte{}, manifests: map[string][]byte{}, tags: map[string]string{}, types: map[string]string{}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *fakeRegistry) client() *Client { return &Client{HTTP: r.Client(), Arch: "amd64"} }

func (r *fakeRegistry) host() string { return strings.TrimPrefix(r.URL, "https://") }

func (r *fakeRegistry) ref(tail string) oci.Reference {
	ref, err := oci.Parse(oci.Scheme + r.host() + "/team/tool" + tail)
	if err != nil {
		r.t.Fatal(err)
	}
	return ref
}

// asked are the requests so far, as method and path.
func (r *fakeRegistry) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.seen...)
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.seen = append(r.seen, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	if r.answer != nil && r.answer(w, req) {
		return
	}
	switch {
	case req.URL.Path == "/token":
		r.token(w, req)
	case !r.admitted(w, req):
	case strings.Contains(req.URL.Path, "/manifests/"):
		r.manifest(w, req)
	case strings.Contains(req.URL.Path, "/blobs/"):
		r.blob(w, req)
	default:
		http.NotFound(w, req)
	}
}

func (r *fakeRegistry) admitted(w http.ResponseWriter, req *http.Request) bool {
	got := req.Header.Get("Authorization")
	switch r.auth {
	case "":
		return true
	case "basic":
		if got == "Basic "+base64.StdEncoding.EncodeToString([]byte(r.user+":"+r.password)) {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
	case "token":
		if got == "Bearer "+goodToken {
			return true
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="%s",scope="repository:team/tool:pull"`, r.URL, r.host()))
	}
	refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	return false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}

// token is the token service: for all if no user is set.
func (r *fakeRegistry) token(w http.ResponseWriter, req *http.Request) {
	_ = req.ParseForm()
	user, password, _ := req.BasicAuth()
	known := req.Method == http.MethodPost && req.Form.Get("grant_type") == "refresh_token" && req.Form.Get("refresh_token") == r.refresh && r.refresh != ""
	known = known || r.user != "" && user == r.user && password == r.password
	if r.user == "" && r.refresh == "" {
		known = true
	}
	if !known || req.Form.Get("scope") != "repository:team/tool:pull" {
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "bad credential "+req.Form.Get("refresh_token")+password)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"access_token": goodToken})
}

func (r *fakeRegistry) manifest(w http.ResponseWriter, req *http.Request) {
	_, name, _ := strings.Cut(req.URL.Path, "/manifests/")
	if d, ok := r.tags[name]; ok {
		name = d
	}
	body, ok := r.manifests[name]
	if !ok {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		return
	}
	w.Header().Set("Content-Type", r.types[name])
	w.Header().Set(digestHeader, name)
	_, _ = w.Write(body)
}

func (r *fakeRegistry) blob(w http.ResponseWriter, req *http.Request) {
	_, name, _ := strings.Cut(req.URL.Path, "/blobs/")
	body, ok := r.blobs[name]
	if !ok {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown")
		return
	}
	if r.noRange {
		req.Header.Del("Range")
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(body))
}

// addBlob stores content and describes it.
func (r *fakeRegistry) addBlob(mediaType, title string, content []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if title != "" {
		d.Annotations = map[string]string{v1.AnnotationTitle: title}
	}
	r.blobs[d.Digest.String()] = content
	return d
}

// addManifest stores a manifest or an index, under a tag unless that is "".
func (r *fakeRegistry) addManifest(tag, mediaType string, document any) v1.Descriptor {
	body, ok := document.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(document); err != nil {
			r.t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(body), Size: int64(len(body))}
	r.manifests[d.Digest.String()], r.types[d.Digest.String()] = body, mediaType
	if tag != "" {
		r.tags[tag] = d.Digest.String()
	}
	return d
}

// addImage stores an image of one layer for a platform.
func (r *fakeRegistry) addImage(tag, platform string, layers ...[]byte) v1.Descriptor {
	system, arch, _ := strings.Cut(platform, "/")
	config := r.addBlob(v1.MediaTypeImageConfig, "", fmt.Appendf(nil, `{"os":%q,"architecture":%q}`, system, arch))
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config}
	for _, content := range layers {
		m.Layers = append(m.Layers, r.addBlob(v1.MediaTypeImageLayerGzip, "", content))
	}
	d := r.addManifest(tag, v1.MediaTypeImageManifest, m)
	if system != "" {
		arch, variant, _ := strings.Cut(arch, "/")
		d.Platform = &v1.Platform{OS: system, Architecture: arch, Variant: variant}
	}
	return d
}

// addArtifact stores files as oras does.
func (r *fakeRegistry) addArtifact(tag string, files map[string]string) v1.Descriptor {
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/x-tools", Config: r.addBlob(v1.MediaTypeEmptyJSON, "", []byte("{}"))}
	for name, content := range files {
		m.Layers = append(m.Layers, r.addBlob("application/octet-stream", name, []byte(content)))
	}
	return r.addManifest(tag, v1.MediaTypeImageManifest, m)
}

func (r *fakeRegistry) addIndex(tag string, entries ...v1.Descriptor) v1.Descriptor {
	return r.addManifest(tag, v1.MediaTypeImageIndex, v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: entries})
}

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func FuzzBase(f *testing.F) {
	for _, text := range []string{"oci://reg:5000/a/b:v1", "oci://[::1]/x@" + someDigest.String(), "oci://docker.io/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := oci.Parse(text)
		if err != nil {
			return
		}
		if u := mustURL(t, (&Client{}).base(r)+"/manifests/"+name(r)); u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
			t.Errorf("%q leads to %s", text, u)
		}
	})
}

var someDigest = digest.FromString("some")
