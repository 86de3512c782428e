package artifact

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// registry serves manifests by tag and digest, and blobs.
type registry struct {
	*site
	manifests, blobs map[string][]byte
	// wrap, if set, answers in place of the registry; it says whether it did.
	wrap func(w http.ResponseWriter, r *http.Request) bool
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	return registryOn(t, newSite)
}

// registryOn is a registry at a site of that kind.
func registryOn(t *testing.T, kind func(*testing.T, http.HandlerFunc) *site) *registry {
	t.Helper()
	r := &registry{manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	r.site = kind(t, func(w http.ResponseWriter, q *http.Request) {
		if r.wrap != nil && r.wrap(w, q) {
			return
		}
		name := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
		if content, ok := r.manifests[name]; ok && strings.Contains(q.URL.Path, "/manifests/") {
			var typed struct{ MediaType string }
			_ = json.Unmarshal(content, &typed)
			w.Header().Set("Content-Type", typed.MediaType)
			_, _ = w.Write(content)
			return
		}
		if content, ok := r.blobs[name]; ok {
			breaking(content, 1<<20, "")(w, q)
			return
		}
		http.NotFound(w, q)
	})
	return r
}

func (r *registry) blob(content []byte, mediaType string) map[string]any {
	digest := "sha256:" + sumOf(content)
	r.blobs[digest] = content
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(content)}
}

func (r *registry) manifest(t *testing.T, tag string, config map[string]any, layers ...map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	})
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + sumOf(text)
	r.manifests[tag], r.manifests[digest] = text, text
	return digest
}

func (r *registry) at(rest string) string {
	return "oci://" + strings.TrimPrefix(r.tls.URL, "https://") + "/tools/" + rest
}

const (
	imageConfig = "application/vnd.oci.image.config.v1+json"
	imageLayer  = "application/vnd.oci.image.layer.v1.tar+gzip"
)

func TestArtifactInARegistry(t *testing.T) {
	content := gzipOf(t, tarOf(t, tarMember{name: "bin/kubelet", content: string(random(3 << 20))}))
	r := newRegistry(t)
	digest := r.manifest(t, "v1", r.blob([]byte("{}"), "application/vnd.oci.empty.v1+json"), r.blob(content, "application/gzip"))
	for _, tc := range []struct {
		ref        string
		unverified bool
	}{{"kubelet:v1", true}, {"kubelet@" + digest, false}, {"kubelet:v1@" + digest, false}, {"kubelet:v1#sha256=" + sumOf(content), false}} {
		t.Run(tc.ref, func(t *testing.T) {
			m := memory.New()
			f := r.fetcher(Options{RequireDigests: !tc.unverified})
			a := kubelet("bin/kubelet", r.at(tc.ref))
			got, err := f.Stage(t.Context(), m, a)
			if err != nil || got.Unverified != tc.unverified || got.Bytes != int64(len(content)) || got.Resumed != 3 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if staged, _ := m.ReadFile(temp); len(staged) != 3<<20 {
				t.Errorf("%d bytes", len(staged))
			}
			before := r.hits.Load()
			if got, err := f.Stage(t.Context(), m, a); err != nil || got.Cached == tc.unverified || !tc.unverified && r.hits.Load() != before {
				t.Errorf("again: %+v, %v", got, err)
			}
		})
	}
	if _, err := r.fetcher(Options{RequireDigests: true}).Stage(t.Context(), memory.New(), kubelet("", r.at("kubelet:v1"))); !errors.As(err, new(*RefusedError)) {
		t.Errorf("got %v", err)
	}
}

func TestFilesOutOfAnImage(t *testing.T) {
	r := newRegistry(t)
	lower := gzipOf(t, tarOf(t, tarMember{name: "usr/bin/kubelet", content: "old"}, tarMember{name: "usr/bin/kubectl", content: "KUBECTL"}))
	upper := gzipOf(t, tarOf(t, tarMember{name: "usr/bin/kubelet", content: string(random(2 << 20))}))
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux"}`, runtime.GOARCH)
	digest := r.manifest(t, "v1", r.blob([]byte(config), imageConfig), r.blob(lower, imageLayer), r.blob(upper, imageLayer))
	m := memory.New()
	a := kubelet("/usr/bin/kubelet", r.at("node@"+digest))
	a.Files = append(a.Files, desired.ArtifactFile{Member: "usr/bin/kubectl", Path: "/usr/local/bin/kubectl", Mode: 0o755},
		desired.ArtifactFile{Member: "usr/bin/kubectl", Path: "/usr/local/bin/k", Mode: 0o700})
	got, err := r.fetcher(Options{}).Stage(t.Context(), m, a)
	if err != nil || got.Unverified || got.Bytes != int64(len(lower)+len(upper)) {
		t.Fatalf("got %+v, %v", got, err)
	}
	tree := m.Tree("/usr/local/bin")
	if staged, _ := m.ReadFile(temp); len(staged) != 2<<20 || tree[host.TempName("/usr/local/bin/kubectl")] != "-rwxr-xr-x 0:0 KUBECTL" || tree[host.TempName("/usr/local/bin/k")] != "-rwx------ 0:0 KUBECTL" {
		t.Errorf("%d bytes of kubelet", len(staged))
	}
}

func TestRegistrySaysWhyNot(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for _, tc := range []struct {
		name       string
		wrap       func(http.ResponseWriter, *http.Request) bool
		arch, want string
		hint       string
		tries      int32
	}{
		{"401", status(401), runtime.GOARCH, "401", "AcrPull", 1},
		{"403", status(403), runtime.GOARCH, "403", "AcrPull", 1},
		{"404", status(404), runtime.GOARCH, "404", "repository and tag", 1},
		{"429", status(429), runtime.GOARCH, "429", "mirror", 9},
		{"500", status(500), runtime.GOARCH, "500", "try again later", 9},
		{"architecture", nil, other, "architecture", "architecture", 3},
		{"no such file", nil, runtime.GOARCH, "no usr/bin/kubelet", "", 4},
	} {
		inBubbleNamed(t, tc.name, func(t *testing.T) {
			r := registryOn(t, newPipeSite)
			r.wrap = tc.wrap
			layer := gzipOf(t, tarOf(t, tarMember{name: "bin/kubelet", content: "K"}))
			r.manifest(t, "v1", r.blob([]byte(fmt.Sprintf(`{"architecture":%q,"os":"linux"}`, tc.arch)), imageConfig), r.blob(layer, imageLayer))
			m := memory.New()
			_, err := r.fetcher(Options{Budget: time.Second}).Stage(t.Context(), m, kubelet("usr/bin/kubelet", r.at("node:v1")))
			if err == nil || !strings.Contains(err.Error(), tc.want) || r.hits.Load() > tc.tries {
				t.Fatalf("after %d requests: %v", r.hits.Load(), err)
			}
			hinter, ok := errors.AsType[interface {
				error
				Hint() string
			}](err)
			if !ok || !strings.Contains(hinter.Hint(), tc.hint) {
				t.Errorf("hint of %T", err)
			}
			if tree := m.Tree("/usr/local"); len(tree[temp]) > 0 {
				t.Error("something is left")
			}
		})
	}
}

func TestListsMustBeSigned(t *testing.T) {
	content := []byte("KUBELET")
	s := newSite(t, always(content))
	list := fmt.Sprintf(`{%q: %q}`, s.plain.URL, sumOf(content))
	public, private, _ := ed25519.GenerateKey(nil)
	_, stranger, _ := ed25519.GenerateKey(nil)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		sig  []byte
		want string
	}{
		"raw":      {ed25519.Sign(private, []byte(list)), ""},
		"base64":   {[]byte(base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(list))) + "\n"), ""},
		"none":     {nil, "not signed"},
		"stranger": {ed25519.Sign(stranger, []byte(list)), "none of the keys"},
		"altered":  {ed25519.Sign(private, []byte(list+" ")), "none of the keys"},
		"rubbish":  {[]byte("x"), "none of the keys"},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory.New()
			m.Put("/etc/berth/artifacts.d/a.json", list, 0o644)
			m.Put("/etc/berth/keys.d/site.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), 0o644)
			if tc.sig != nil {
				m.Put("/etc/berth/artifacts.d/a.json.sig", string(tc.sig), 0o644)
			}
			_, err := s.fetcher(Options{RequireDigests: true}).Stage(t.Context(), m, kubelet("", s.plain.URL))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The contract's proxy and CA are used for the first byte.
func TestEgress(t *testing.T) {
	inBubble(t, egress)
}

func egress(t *testing.T) {
	content := []byte("KUBELET")
	s := newPipeSite(t, always(content))
	var asked, refuse atomic.Int32
	proxy := newPipeSite(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if refuse.Load() > 0 {
			w.WriteHeader(int(refuse.Load()))
			return
		}
		_, _ = w.Write(content) // of a plain request
	}).plain
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tls.Certificate().Raw}))
	sum := "#sha256=" + sumOf(content)
	stage := func(via *desired.Egress, url string) error {
		a := kubelet("", url+sum)
		a.Via = via
		client := newClient()
		client.Transport.(*http.Transport).DialContext = network.dial
		t.Cleanup(client.CloseIdleConnections)
		_, err := New(Options{Budget: 500 * time.Millisecond, Client: client}).Stage(t.Context(), memory.New(), a)
		return err
	}
	if err := stage(&desired.Egress{CAs: []string{ca}}, s.tls.URL); err != nil {
		t.Errorf("with the CA: %v", err)
	}
	if err := stage(nil, s.tls.URL); err == nil || !strings.Contains(hintOf(err), "custom CAs") {
		t.Errorf("without the CA: %v, hint %q", err, hintOf(err))
	}
	// No resolver knows this name: only the proxy can have been asked.
	via := &desired.Egress{HTTPProxy: desired.Secret(proxy.URL), HTTPSProxy: desired.Secret(proxy.URL), NoProxy: []string{"127.0.0.0/8"}}
	if err := stage(via, "http://files.berth.invalid/k"); err != nil || asked.Load() != 1 {
		t.Errorf("after %d requests to the proxy: %v", asked.Load(), err)
	}
	refuse.Store(http.StatusProxyAuthRequired)
	if err := stage(via, "https://files.berth.invalid/k"); err == nil || !strings.Contains(hintOf(err), "proxy") {
		t.Errorf("refused: %v, hint %q", err, hintOf(err))
	}
	proxy.Close()
	if err := stage(via, "https://files.berth.invalid/k"); err == nil || !strings.Contains(hintOf(err), "proxy") {
		t.Errorf("gone: %v, hint %q", err, hintOf(err))
	}
	if err := stage(&desired.Egress{CAs: []string{"x"}}, s.tls.URL); err == nil || !strings.Contains(err.Error(), "CA 0") {
		t.Errorf("got %v", err)
	}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*DownloadError](err); ok {
		return e.Hint()
	}
	return ""
}

// A reference with the digest of its file is refused like any other.
func TestRegistrySaysWhyNotForADigest(t *testing.T) {
	file := "#sha256=" + sumOf([]byte("K"))
	image := newRegistry(t)
	image.manifest(t, "v1", image.blob(fmt.Appendf(nil, `{"architecture":%q,"os":"linux"}`, runtime.GOARCH), imageConfig), image.blob(gzipOf(t, tarOf(t)), imageLayer))
	gone := newRegistry(t)
	pinned := gone.manifest(t, "v1", gone.blob([]byte("{}"), "application/vnd.oci.empty.v1+json"), gone.blob([]byte("K"), "application/gzip"))
	clear(gone.blobs)
	busy := newRegistry(t)
	busy.wrap = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	for _, tc := range []struct {
		name string
		r    *registry
		ref  string
		want string
	}{
		{"no such tag", gone, "none:v1" + file, "404"},
		{"no such blob", gone, "kubelet@" + pinned, "404"},
		{"an image", image, "node:v1" + file, "image"},
		{"too many", busy, "kubelet:v1" + file, "429"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.r.hits.Store(0)
			_, err := tc.r.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", tc.r.at(tc.ref)))
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.r.hits.Load() > 3 {
				t.Errorf("after %d requests: %v", tc.r.hits.Load(), err)
			}
			if e, ok := errors.AsType[*DownloadError](err); ok && fmt.Sprint(e.Status) != tc.want {
				t.Errorf("status %d", e.Status)
			}
		})
	}
}
