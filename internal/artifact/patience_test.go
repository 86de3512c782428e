package artifact

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// slowly sends content in steps with pauses between them.
func slowly(w http.ResponseWriter, r *http.Request, content []byte, step int, pause time.Duration) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	for n := 0; n < len(content) && r.Context().Err() == nil; n += step {
		_, _ = w.Write(content[n:min(len(content), n+step)])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(pause)
	}
}

// A source is not to blame for the time in which berth itself is busy.
func TestSlowDiskIsNoSlowSource(t *testing.T) {
	inBubble(t, slowDiskIsNoSlowSource)
}

func slowDiskIsNoSlowSource(t *testing.T) {
	content := random(16 << 20)
	s := newPipeSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	f := s.fetcher(Options{Stall: 200 * time.Millisecond, Budget: 500 * time.Millisecond})
	a := kubelet("", s.tls.URL)
	src, err := f.parseSource(memory.New(), s.tls.URL, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTries(t.Context(), f, memory.New(), a, []*source{src})
	fd := &feed{tries: tr, ctx: t.Context(), from: []*source{src}}
	defer fd.close()
	buf := make([]byte, 64<<10)
	for total := 0; total < len(content); {
		n, err := fd.Read(buf)
		if err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		if total += n; total == n {
			time.Sleep(800 * time.Millisecond)
		}
	}
	if tr.left() < 400*time.Millisecond {
		t.Errorf("%s are left of the budget", tr.left())
	}
}

// Only one zstd decoder runs at a time: who waits for it loses nothing.
func TestWaitForTheDecoder(t *testing.T) {
	inBubble(t, waitForTheDecoder)
}

func waitForTheDecoder(t *testing.T) {
	content := zstdOf(t, tarOf(t, tarMember{name: "bin/kubelet", content: string(random(8 << 20))}))
	s := newPipeSite(t, breaking(content, len(content), `"x"`))
	f := s.fetcher(Options{Stall: 200 * time.Millisecond, Budget: 500 * time.Millisecond})
	free, err := f.takeWindow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(900*time.Millisecond, free)
	if _, err := f.Stage(t.Context(), memory.New(), kubelet("bin/kubelet", s.plain.URL+"#sha256="+sumOf(content))); err != nil {
		t.Error(err)
	}
}

// As long as bytes come, in whichever layer, the budget is not used up.
func TestBudgetOfAnImage(t *testing.T) {
	inBubble(t, budgetOfAnImage)
}

func budgetOfAnImage(t *testing.T) {
	r := registryOn(t, newPipeSite)
	layer := func(name string, n int) map[string]any {
		return r.blob(tarOf(t, tarMember{name: name, content: string(random(n))}), "application/vnd.oci.image.layer.v1.tar")
	}
	first := layer("usr/x", 300<<10)
	digest := r.manifest(t, "v1", r.blob(fmt.Appendf(nil, `{"architecture":%q,"os":"linux"}`, runtime.GOARCH), imageConfig),
		layer("bin/kubelet", 10), first, layer("usr/y", 100<<10), layer("usr/z", 100<<10))
	r.wrap = func(w http.ResponseWriter, q *http.Request) bool {
		content, ok := r.blobs[q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]]
		if ok = ok && len(content) > 10<<10; ok {
			slowly(w, q, content, 10<<10, 30*time.Millisecond)
		}
		return ok
	}
	if _, err := r.fetcher(Options{Budget: 400 * time.Millisecond, Stall: 300 * time.Millisecond}).Stage(t.Context(), memory.New(), kubelet("/bin/kubelet", r.at("node@"+digest))); err != nil {
		t.Error(err)
	}
}

// A server without ranges sends again what is there already: that is no silence.
func TestContinuedWithoutRanges(t *testing.T) {
	content := random(300 << 10)
	for name, serve := range map[string]func(*testing.T, http.HandlerFunc) (*site, string){
		"https": func(t *testing.T, h http.HandlerFunc) (*site, string) {
			s := newPipeSite(t, h)
			return s, s.tls.URL + "#sha256=" + sumOf(content)
		},
		"registry": func(t *testing.T, h http.HandlerFunc) (*site, string) {
			r := registryOn(t, newPipeSite)
			digest := r.manifest(t, "v1", r.blob([]byte("{}"), "application/vnd.oci.empty.v1+json"), r.blob(content, "application/gzip"))
			r.wrap = func(w http.ResponseWriter, q *http.Request) bool {
				ok := strings.HasSuffix(q.URL.Path, "sha256:"+sumOf(content))
				if ok {
					h(w, q)
				}
				return ok
			}
			return r.site, r.at("k@" + digest)
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, func(t *testing.T) { continuedWithoutRanges(t, content, serve) }) })
	}
}

func continuedWithoutRanges(t *testing.T, content []byte, serve func(*testing.T, http.HandlerFunc) (*site, string)) {
	t.Helper()
	var n atomic.Int32
	s, url := serve(t, func(w http.ResponseWriter, q *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content[:200<<10])
			return // breaks off
		}
		slowly(w, q, content, 10<<10, 20*time.Millisecond)
	})
	got, err := s.fetcher(Options{Budget: 2 * time.Second, Stall: 200 * time.Millisecond}).Stage(t.Context(), memory.New(), kubelet("", url))
	if err != nil || n.Load() != 2 || got.Resumed != 1 {
		t.Errorf("after %d requests: %+v, %v", n.Load(), got, err)
	}
}

// A full disk is told at once, whatever the network does.
func TestFullDiskWhileTheSourceStalls(t *testing.T) {
	inBubble(t, fullDiskWhileTheSourceStalls)
}

func fullDiskWhileTheSourceStalls(t *testing.T) {
	content := gzipOf(t, tarOf(t, tarMember{name: "a", content: "A"}, tarMember{name: "b", content: string(random(4 << 20))}))
	s := newPipeSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:1<<20])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	start := time.Now()
	_, err := s.fetcher(Options{CacheBytes: -1, Stall: 20 * time.Second, Budget: 20 * time.Second}).Stage(t.Context(),
		effect.Inject(memory.New(), effect.Plan{{At: 2, Kind: effect.Fail, Err: syscall.ENOSPC}}), kubelet("a", s.tls.URL+"#sha256="+sumOf(content)))
	if !errors.Is(err, syscall.ENOSPC) || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}
