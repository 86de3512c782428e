package artifact

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// nodeImage is a registry with an image, and the image's digest.
func nodeImage(t *testing.T) (*registry, string) {
	r := newRegistry(t)
	layer := gzipOf(t, tarOf(t, tarMember{name: "kubelet", content: "KUBELET"}, tarMember{name: "bin/kubectl", content: "KUBECTL"}))
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux"}`, runtime.GOARCH)
	return r, r.manifest(t, "v1", r.blob([]byte(config), imageConfig), r.blob(layer, imageLayer))
}

// fromImage is two files out of an image.
func fromImage(image string) *desired.Artifact {
	return &desired.Artifact{Name: image, Image: image, Files: []desired.ArtifactFile{
		{Member: "/kubelet", Path: "/usr/local/bin/kubelet", Mode: 0o755}, {Member: "/bin/kubectl", Path: "/usr/local/bin/kubectl", Mode: 0o755}}}
}

func hosts(m *memory.Host, registry, text string) {
	m.Put(HostsDir+"/"+registry+"/hosts.toml", text, 0o644)
}

// log notes what a registry is asked.
func (r *registry) log(to *[]string) {
	r.wrap = func(_ http.ResponseWriter, q *http.Request) bool {
		*to = append(*to, q.URL.Path[strings.Index(q.URL.Path, "/node/")+6:strings.LastIndexByte(q.URL.Path, '/')]+"?"+q.URL.RawQuery)
		return false
	}
}

func TestImageByHosts(t *testing.T) {
	r, digest := nodeImage(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.tls.Certificate().Raw}))
	for name, c := range map[string]struct {
		image, dir, text string
		// asked is the first question and the last one.
		asked [2]string
	}{
		"mirror":        {"docker.io/x/node:v1", "docker.io", `[host."TLS"]`, [2]string{"manifests?ns=docker.io", "blobs?ns=docker.io"}},
		"default":       {"a.invalid/node:v1", "_default", `server = "TLS"`, [2]string{"manifests?ns=a.invalid", "blobs?ns=a.invalid"}},
		"port":          {"a.invalid:5000/node:v1", "a.invalid_5000_", `server = "TLS"`, [2]string{"manifests?ns=a.invalid%3A5000", "blobs?ns=a.invalid%3A5000"}},
		"after another": {"a.invalid/node:v1", "a.invalid", "server = \"TLS\"\n[host.\"" + gone.URL + "\"]", [2]string{"manifests?ns=a.invalid", "blobs?ns=a.invalid"}},
		"pulls alone": {"a.invalid/node:v1", "a.invalid", "server = \"TLS\"\n[host.\"PLAIN\"]\ncapabilities = [\"pull\"]",
			[2]string{"manifests?ns=a.invalid", "blobs?ns=a.invalid"}},
		"plain, pinned":    {"a.invalid/node@" + digest, "a.invalid", `[host."PLAIN"]`, [2]string{"manifests?ns=a.invalid", "blobs?ns=a.invalid"}},
		"plain, no digest": {"a.invalid/node:v1", "a.invalid", "server = \"TLS\"\n[host.\"PLAIN\"]", [2]string{"manifests?ns=a.invalid", "blobs?ns=a.invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			r.log(&asked)
			m := memory.New()
			text := strings.NewReplacer("TLS", r.tls.URL, "PLAIN", r.plain.URL).Replace(c.text)
			hosts(m, c.dir, text)
			if _, err := r.fetcher(Options{}).Stage(t.Context(), m, fromImage(c.image)); err != nil {
				t.Fatal(err)
			}
			if asked[0] != c.asked[0] || asked[len(asked)-1] != c.asked[1] {
				t.Errorf("asked %v", asked)
			}
			tree := m.Tree("/usr/local/bin")
			if tree[host.TempName("/usr/local/bin/kubelet")] != "-rwxr-xr-x 0:0 KUBELET" || tree[host.TempName("/usr/local/bin/kubectl")] != "-rwxr-xr-x 0:0 KUBECTL" {
				t.Errorf("%v", tree)
			}
		})
	}
	t.Run("a mirror that comes back, before plain http", func(t *testing.T) {
		busy := 2
		r.wrap = func(w http.ResponseWriter, _ *http.Request) bool {
			if busy--; busy < 0 {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		m := memory.New()
		hosts(m, "a.invalid", "server = \""+r.plain.URL+"\"\n[host.\""+r.tls.URL+"\"]")
		if _, err := r.fetcher(Options{}).Stage(t.Context(), m, fromImage("a.invalid/node:v1")); err != nil {
			t.Error(err)
		}
	})
	r.wrap = nil
	trusted := func(a *desired.Artifact, m *memory.Host) error {
		_, err := New(Options{Budget: time.Minute}).Stage(t.Context(), m, a)
		return err
	}
	own := strings.TrimPrefix(r.tls.URL, "https://")
	t.Run("CA of the state", func(t *testing.T) {
		a := fromImage("a.invalid/node:v1")
		a.Ahead = map[string]desired.Content{
			HostsDir + "/a.invalid/hosts.toml": desired.Text("[host.\"" + r.tls.URL + "\"]\nca = \"/ca.pem\"\n"), "/ca.pem": desired.Text(ca)}
		if err := trusted(a, memory.New()); err != nil {
			t.Error(err)
		}
	})
	t.Run("CA in the directory", func(t *testing.T) {
		m := memory.New()
		m.Put(HostsDir+"/"+own+"/ca.crt", ca, 0o644)
		if err := trusted(fromImage(own+"/node:v1"), m); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody verified", func(t *testing.T) {
		m := memory.New()
		hosts(m, own, "skip_verify = true")
		if err := trusted(fromImage(own+"/node@"+digest), m); err != nil {
			t.Error(err)
		}
		err := trusted(fromImage(own+"/node:v1"), m)
		if e, ok := errors.AsType[*remote.UnverifiedError](err); !ok || !strings.Contains(err.Error(), "nothing is known to compare") || !strings.Contains(e.Hint(), "digest") {
			t.Errorf("a tag: %v", err)
		}
		if _, retried := errors.AsType[*DownloadError](err); retried {
			t.Errorf("a tag: %v", err)
		}
	})
}

func TestImageIsRefused(t *testing.T) {
	r, _ := nodeImage(t)
	for text, want := range map[string]string{
		"[":                          "hosts.toml",
		`ca = "/nowhere.pem"`:        "/nowhere.pem",
		`client = "/nowhere.pem"`:    "/nowhere.pem",
		`capabilities = ["pull"]`:    "may be asked",
		`capabilities = ["resolve"]`: "may be asked",
	} {
		m := memory.New()
		hosts(m, "_default", text+"\n")
		_, err := r.fetcher(Options{}).Stage(t.Context(), m, fromImage(strings.TrimPrefix(r.tls.URL, "https://")+"/tools/node:v1"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A tag may come to mean something else: it is asked for, and what it means is taken
// out of the cache.
func TestImageOutOfTheCache(t *testing.T) {
	r, _ := nodeImage(t)
	m, f := memory.New(), r.fetcher(Options{})
	a := fromImage(strings.TrimPrefix(r.tls.URL, "https://") + "/tools/node:v1")
	if _, err := f.Stage(t.Context(), m, a); err != nil {
		t.Fatal(err)
	}
	for _, file := range a.Files {
		if err := host.Commit(m, file.Path); err != nil {
			t.Fatal(err)
		}
	}
	r.manifests["v2"] = r.manifests["v1"]
	clear(r.blobs)
	again := fromImage(strings.TrimSuffix(a.Image, "v1") + "v2")
	again.Files = again.Files[:1]
	if got, err := f.Stage(t.Context(), m, again); err == nil {
		t.Fatalf("without its configuration: %+v", got)
	}
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux"}`, runtime.GOARCH)
	r.blob([]byte(config), imageConfig)
	if got, err := f.Stage(t.Context(), m, again); err != nil || !got.Cached || !got.Unverified {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := r.fetcher(Options{RequireDigests: true}).Stage(t.Context(), m, again); !errors.As(err, new(*RefusedError)) {
		t.Errorf("got %v", err)
	}
}
