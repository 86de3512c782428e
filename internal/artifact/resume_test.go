package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// random is content that no part of repeats.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// breaking serves content in answers of at most most bytes, with ranges; tag is
// its entity tag.
func breaking(content []byte, most int, tag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		first, status := 0, http.StatusOK
		if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == tag) {
			first, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
			status = http.StatusPartialContent
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(content)-1, len(content)))
		}
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-first))
		w.WriteHeader(status)
		_, _ = w.Write(content[first:min(first+most, len(content))])
	}
}

func TestBrokenDownloadIsContinued(t *testing.T) {
	content := random(1 << 20)
	for _, tc := range []struct{ name, fragment, tag string }{
		{"by digest", "#sha256=" + sumOf(content), ""},
		{"by entity tag", "", `"one"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, breaking(content, 300_000, tc.tag))
			m := memory.New()
			got, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL+tc.fragment))
			if err != nil || got.Resumed != 3 || s.hits.Load() != 4 || got.SHA256 != sumOf(content) || got.Bytes != 1<<20 {
				t.Errorf("%d requests: %+v, %v", s.hits.Load(), got, err)
			}
			if staged, _ := m.ReadFile(temp); !bytes.Equal(staged, content) {
				t.Errorf("staged %d other bytes", len(staged))
			}
		})
	}
}

func TestServerWithoutRanges(t *testing.T) {
	content := random(1 << 20)
	var n atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:len(content)/4*int(n.Add(1))])
	})
	m := memory.New()
	got, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL+"#sha256="+sumOf(content)))
	if err != nil || got.Resumed != 3 || got.Bytes != 1<<20 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Content that changes between two answers is fetched anew, never glued.
func TestChangedContentIsNotContinued(t *testing.T) {
	old, present := random(1<<20), bytes.Repeat([]byte("new"), 1<<18)
	var n atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			breaking(old, 1000, `"old"`)(w, r)
			return
		}
		breaking(present, len(present), `"new"`)(w, r)
	})
	m := memory.New()
	got, err := s.fetcher(Options{}).Stage(t.Context(), m, kubelet("", s.tls.URL))
	if staged, _ := m.ReadFile(temp); err != nil || !bytes.Equal(staged, present) {
		t.Errorf("got %+v, %v, %d bytes", got, err, len(staged))
	}
}

func TestMirrorsContinueEachOther(t *testing.T) {
	content := random(1 << 20)
	sum := "#sha256=" + sumOf(content)
	half := newSite(t, breaking(content, 1<<19, `"a"`))
	var first atomic.Bool
	dying := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			breaking(content, 1<<19, `"b"`)(w, r)
			return
		}
		http.NotFound(w, r)
	})
	m := memory.New()
	got, err := half.fetcher(Options{}).Stage(t.Context(), m, kubelet("", dying.plain.URL+sum, half.plain.URL+sum))
	if err != nil || got.Resumed != 1 || got.URL != half.plain.URL {
		t.Errorf("got %+v, %v", got, err)
	}
	if staged, _ := m.ReadFile(temp); !bytes.Equal(staged, content) {
		t.Errorf("staged %d other bytes", len(staged))
	}
}

// A mirror that lies spoils what it has a part in; the honest one then gives all.
func TestLyingMirror(t *testing.T) {
	content := random(1 << 20)
	sum := "#sha256=" + sumOf(content)
	honest := newSite(t, breaking(content, len(content), ""))
	liar := newSite(t, breaking(bytes.ToUpper(content), 1<<19, ""))
	m := memory.New()
	got, err := honest.fetcher(Options{}).Stage(t.Context(), m, kubelet("", liar.plain.URL+sum, honest.plain.URL+sum))
	if err != nil || got.URL != honest.plain.URL {
		t.Errorf("got %+v, %v", got, err)
	}
	if staged, _ := m.ReadFile(temp); !bytes.Equal(staged, content) {
		t.Errorf("staged %d other bytes", len(staged))
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	content := []byte("KUBELET")
	var n atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write(content)
	})
	start := time.Now()
	if _, err := s.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", s.tls.URL)); err != nil || n.Load() != 2 || time.Since(start) < time.Second {
		t.Errorf("after %d requests and %s: %v", n.Load(), time.Since(start), err)
	}
	busy := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, err := busy.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", busy.tls.URL))
	if e, ok := errors.AsType[*DownloadError](err); !ok || e.Status != 429 || busy.hits.Load() != 1 {
		t.Errorf("after %d requests: %v", busy.hits.Load(), err)
	}
}

// A server that drips is left, and the one that works is asked.
func TestDrippingServer(t *testing.T) {
	inBubble(t, drippingServer)
}

func drippingServer(t *testing.T) {
	content := random(1 << 16)
	sum := "#sha256=" + sumOf(content)
	drip := newPipeSite(t, func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(content) && r.Context().Err() == nil; i++ {
			_, _ = w.Write(content[i : i+1])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	good := newPipeSite(t, always(content))
	m := memory.New()
	got, err := good.fetcher(Options{Stall: 200 * time.Millisecond}).Stage(t.Context(), m, kubelet("", drip.plain.URL+sum, good.plain.URL+sum))
	if err != nil || got.URL != good.plain.URL || drip.hits.Load() != 1 {
		t.Errorf("got %+v, %v after %d requests to the server that drips", got, err, drip.hits.Load())
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 1-2/3")
	f.Add("bytes 0-0/*")
	f.Fuzz(func(t *testing.T, text string) {
		start, size, err := contentRange(text)
		if err == nil && (start < 0 || size != -1 && size <= start) {
			t.Errorf("%q: from %d of %d", text, start, size)
		}
	})
}
