package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

var _ converge.Fetcher = (*Fetcher)(nil)

// site serves content over http and https.
type site struct {
	plain, tls *httptest.Server
	hits       atomic.Int32
}

func newSite(t *testing.T, h http.HandlerFunc) *site {
	t.Helper()
	return serveOn(t, h, nil)
}

// serveOn serves on the loopback, or where listen says.
func serveOn(t *testing.T, h http.HandlerFunc, listen func() net.Listener) *site {
	t.Helper()
	s := &site{}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.hits.Add(1); h(w, r) })
	s.plain, s.tls = httptest.NewUnstartedServer(counted), httptest.NewUnstartedServer(counted)
	s.tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, server := range []*httptest.Server{s.plain, s.tls} {
		if listen != nil {
			_ = server.Listener.Close()
			server.Listener = listen()
		}
	}
	s.plain.Start()
	s.tls.StartTLS()
	t.Cleanup(func() {
		s.plain.CloseClientConnections()
		s.tls.CloseClientConnections()
		s.plain.Close()
		s.tls.Close()
	})
	return s
}

func always(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}

// fetcher trusts the site.
func (s *site) fetcher(o Options) *Fetcher {
	client := s.tls.Client()
	client.CheckRedirect = redirect
	transport := client.Transport.(*http.Transport)
	transport.DisableCompression, transport.DialContext = true, network.dial
	o.Client = client
	if o.Budget == 0 {
		o.Budget = time.Minute
	}
	return New(o)
}

func kubelet(member string, urls ...string) *desired.Artifact {
	return &desired.Artifact{Name: "kubelet", URLs: urls, Files: []desired.ArtifactFile{{Member: member, Path: "/usr/local/bin/kubelet", Mode: 0o755}}}
}

var temp = host.TempName("/usr/local/bin/kubelet")

func TestStageUnpacks(t *testing.T) {
	plain := tarOf(t, tarMember{"./", "", tar5}, tarMember{name: "./README", content: "x"}, tarMember{name: "./bin/kubelet", content: "KUBELET"}, tarMember{name: "bin/kubectl", content: "KUBECTL"})
	for _, tc := range []struct {
		name    string
		content []byte
	}{{"tar", plain}, {"gzip", gzipOf(t, plain)}, {"zstd", zstdOf(t, plain)}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, always(tc.content))
			m := memory.New()
			a := kubelet("bin/kubelet", s.plain.URL+"/a?sig=secret#sha256="+sumOf(tc.content))
			a.Files = append(a.Files, desired.ArtifactFile{Member: "/bin/kubectl", Path: "/usr/local/bin/kubectl", Mode: 0o700})
			got, err := s.fetcher(Options{}).Stage(t.Context(), m, a)
			want := converge.Staged{URL: s.plain.URL + "/a", SHA256: sumOf(tc.content), Bytes: int64(len(tc.content))}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
			m.PowerCut(memory.NamesOnly)
			m.Boot()
			for p, want := range map[string]string{"/usr/local/bin/kubelet": "-rwxr-xr-x 0:0 KUBELET", "/usr/local/bin/kubectl": "-rwx------ 0:0 KUBECTL"} {
				if got := m.Tree("/usr/local/bin")[host.TempName(p)]; got != want {
					t.Errorf("%s is %q, want %q", p, got, want)
				}
			}
		})
	}
}

const tar5 = '5' // a directory

func TestStageOfAPlainFile(t *testing.T) {
	content := bytes.Repeat([]byte("kubelet"), 100_000)
	s := newSite(t, always(content))
	m := memory.New()
	got, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL+"/kubelet"))
	if err != nil || !got.Unverified || got.SHA256 != sumOf(content) || got.Bytes != int64(len(content)) {
		t.Errorf("got %+v, %v", got, err)
	}
	if staged, _ := m.ReadFile(temp); !bytes.Equal(staged, content) {
		t.Errorf("staged %d bytes", len(staged))
	}
}

func TestWhereTheDigestComesFrom(t *testing.T) {
	content := []byte("KUBELET")
	right, wrong := sumOf(content), sumOf([]byte("other"))
	s := newSite(t, always(content))
	url := s.plain.URL + "/kubelet"
	for _, tc := range []struct {
		name, fragment, contract, list string
		want                           any // nil is success
	}{
		{"fragment", "#sha256=" + strings.ToUpper(right), "", "", nil},
		{"contract", "", right, "", nil},
		{"list", "", "", fmt.Sprintf(`{%q: %q}`, url, right), nil},
		{"all", "#sha256=" + right, right, fmt.Sprintf(`{%q: %q}`, url, right), nil},
		{"none", "", "", "", &RefusedError{}},
		{"two that differ", "#sha256=" + right, wrong, "", &RefusedError{}},
		{"wrong", "#sha256=" + wrong, "", "", &DigestError{}},
		{"wrong in list", "", "", fmt.Sprintf(`{%q: %q}`, url, wrong), &DigestError{}},
		{"short", "#sha256=abc", "", "", &RefusedError{}},
		{"other fragment", "#md5=abc", "", "", &RefusedError{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := memory.New()
			if tc.list != "" {
				m.Put("/etc/berth/artifacts.d/10-site.json", tc.list, 0o644)
				m.Put("/etc/berth/artifacts.d/README", "not a list", 0o644)
			}
			a := kubelet("", url+tc.fragment)
			a.SHA256 = tc.contract
			got, err := s.fetcher(Options{}).Stage(t.Context(), m, a)
			if tc.want == nil && (err != nil || got.Unverified) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if tc.want != nil && fmt.Sprintf("%T", err) != fmt.Sprintf("%T", tc.want) {
				t.Fatalf("got %T: %v", err, err)
			}
			if _, there := m.Lstat(temp); (there == nil) != (tc.want == nil) {
				t.Errorf("temporary file: %v", there)
			}
		})
	}
}

func TestABrokenListOfDigestsIsRefused(t *testing.T) {
	s := newSite(t, always(nil))
	m := memory.New()
	m.Put("/etc/berth/artifacts.d/a.json", `{"https://x": "abc"}`, 0o644)
	if _, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL)); err == nil || !strings.Contains(err.Error(), "a.json") {
		t.Errorf("got %v", err)
	}
}

func TestStageTriesAgainAndElsewhere(t *testing.T) {
	content := []byte("KUBELET")
	var n atomic.Int32
	flaky := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2: // cut in the middle
			w.Header().Set("Content-Length", "7")
			_, _ = w.Write(content[:3])
		default:
			_, _ = w.Write(content)
		}
	})
	m := memory.New()
	if _, err := flaky.fetcher(Options{}).Stage(t.Context(), m, kubelet("", flaky.tls.URL)); err != nil || n.Load() != 3 {
		t.Errorf("after %d tries: %v", n.Load(), err)
	}
	gone := newSite(t, http.NotFound)
	good := newSite(t, always(content))
	got, err := good.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", gone.plain.URL+"#sha256="+sumOf(content), good.plain.URL+"#sha256="+sumOf(content)))
	if err != nil || got.URL != good.plain.URL || gone.hits.Load() != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestStageSaysWhyNot(t *testing.T) {
	gz := gzipOf(t, tarOf(t, tarMember{name: "bin/other", content: "x"}, tarMember{name: "README", content: "y"}))
	for _, tc := range []struct {
		name   string
		serve  http.HandlerFunc
		member string
		opt    Options
		status int
		text   string
		tries  int32 // at most
	}{
		{"404", http.NotFound, "", Options{}, 404, "HTTP status 404", 1},
		{"403", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "", Options{}, 403, "HTTP status 403", 1},
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "", Options{Budget: 600 * time.Millisecond}, 500, "HTTP status 500", 9},
		{"stalled", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "", Options{Budget: 600 * time.Millisecond, Stall: 100 * time.Millisecond}, 0, "only 1 bytes in 100ms", 9},
		{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", Options{Budget: 300 * time.Millisecond}, 0, "", 9},
		{"too large", always(bytes.Repeat([]byte("x"), 1000)), "", Options{MaxBytes: 999, Budget: 300 * time.Millisecond}, 0, "larger than the bound", 9},
		{"downgrade", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/x?sig=secret", http.StatusFound)
		}, "", Options{}, 0, "plain http needs a digest", 1},
		{"no such member", always(gz), "bin/kubelet", Options{}, 0, "no bin/kubelet in it; it holds bin/other, README", 1},
		{"no archive", always([]byte("<html>")), "bin/kubelet", Options{}, 0, "unpack", 1},
		{"empty", always(nil), "bin/kubelet", Options{}, 0, "no bin/kubelet in it", 1},
		{"half a gzip", always(gz[:len(gz)/2]), "bin/kubelet", Options{}, 0, "unexpected EOF", 1},
		{"bomb", always(gzipOf(t, tarOf(t, tarMember{name: "a", content: strings.Repeat("x", 1<<20)}))), "bin/kubelet", Options{MaxUnpacked: 1 << 16}, 0, "more than the bound", 1},
		{"link", always(tarOf(t, tarMember{"bin/kubelet", "/etc/shadow", '2'})), "bin/kubelet", Options{}, 0, "not a regular file", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newPipeSite(t, tc.serve)
				m := memory.New()
				before := m.Tree("/")
				_, err := s.fetcher(tc.opt).Stage(t.Context(), m, kubelet(tc.member, s.tls.URL+"/k?sig=secret"))
				if err == nil || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got %v", err)
				}
				if e, ok := errors.AsType[*DownloadError](err); tc.status != 0 && (!ok || e.Status != tc.status) {
					t.Errorf("got %#v", err)
				}
				if n := s.hits.Load(); n > tc.tries {
					t.Errorf("%d tries", n)
				}
				if diff := cmp.Diff(before, m.Tree("/")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestNoURL(t *testing.T) {
	_, err := New(Options{}).Stage(t.Context(), memory.New(), kubelet(""))
	if _, ok := errors.AsType[*AbsentError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestStageEndsWithItsContext(t *testing.T) {
	s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.fetcher(Options{}).Stage(ctx, memory.New(), kubelet("", s.tls.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestFaultsOfTheMachine puts a full disk before each effect: the error comes
// through, at once, and nothing is left.
func TestFaultsOfTheMachine(t *testing.T) {
	content := gzipOf(t, tarOf(t, tarMember{name: "a", content: "A"}, tarMember{name: "b", content: "B"}))
	s := newSite(t, always(content))
	a := &desired.Artifact{Name: "cni", URLs: []string{s.tls.URL + "#sha256=" + sumOf(content)}, Files: []desired.ArtifactFile{
		{Member: "a", Path: "/opt/a", Mode: 0o755}, {Member: "b", Path: "/opt/b", Mode: 0o755}}}
	count := effect.Inject(machine(), nil)
	if _, err := s.fetcher(Options{CacheBytes: -1}).Stage(t.Context(), count, a); err != nil {
		t.Fatal(err)
	}
	if count.Count() == 0 {
		t.Fatal("no effects")
	}
	for n := 1; n <= count.Count(); n++ {
		m := machine()
		before := m.Tree("/")
		s.hits.Store(0)
		_, err := s.fetcher(Options{CacheBytes: -1}).Stage(t.Context(), effect.Inject(m, effect.Plan{{At: n, Kind: effect.Fail, Err: syscall.ENOSPC}}), a)
		if !errors.Is(err, syscall.ENOSPC) || s.hits.Load() != 1 {
			t.Errorf("effect %d: %d tries, %v", n, s.hits.Load(), err)
		}
		if diff := cmp.Diff(before, m.Tree("/")); diff != "" {
			t.Errorf("effect %d: %s", n, diff)
		}
	}
	t.Logf("%d effects", count.Count())
}

func machine() *memory.Host {
	m := memory.New()
	m.PutDir("/opt")
	return m
}
