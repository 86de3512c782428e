package artifact

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestReach(t *testing.T) {
	const size = 1 << 20
	content := strings.NewReader(strings.Repeat("x", size))
	var mu sync.Mutex
	var sent []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent = append(sent, r.Method+" "+r.URL.Path)
		mu.Unlock()
		switch {
		case r.URL.Path == "/absent":
			http.NotFound(w, r)
		case r.URL.Path == "/signed" && r.Method == http.MethodHead:
			w.WriteHeader(http.StatusForbidden)
		default:
			http.ServeContent(w, r, "", time.Time{}, content)
		}
	}))
	defer s.Close()
	f := New(Options{Client: s.Client()})
	digest := strings.Repeat("0a", 32)
	for path, want := range map[string]struct {
		size     int64
		status   int
		requests string
	}{
		"/plain":  {size, 0, "HEAD /plain"},
		"/signed": {size, 0, "HEAD /signed GET /signed"},
		"/absent": {-1, 404, "HEAD /absent GET /absent"},
	} {
		mu.Lock()
		sent = nil
		mu.Unlock()
		a := &desired.Artifact{Name: "x", URLs: []string{s.URL + path + "?sig=secret#sha256=" + digest}, Files: []desired.ArtifactFile{{Path: "/x"}}}
		got, err := f.Reach(t.Context(), memory.New(), a)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", path, got, err)
		}
		r := got[0]
		mu.Lock()
		if r.Size != want.size || r.Digest != digest || r.From != "the URL" || strings.Contains(r.URL, "secret") || strings.Join(sent, " ") != want.requests {
			t.Errorf("%s: %+v, requests %q", path, r, sent)
		}
		mu.Unlock()
		e, _ := errors.AsType[*DownloadError](r.Err)
		if (want.status == 0) != (r.Err == nil) || e != nil && e.Status != want.status {
			t.Errorf("%s: %v", path, r.Err)
		}
	}
}

// TestReachElsewhere: files of the machine, and artifacts that nobody has.
func TestReachElsewhere(t *testing.T) {
	h := memory.New()
	h.Put("/srv/x", "12345", 0o644)
	f := New(Options{})
	a := &desired.Artifact{Name: "x", URLs: []string{"file:///srv/x", "file:///srv/y"}, Files: []desired.ArtifactFile{{Path: "/x"}}}
	got, err := f.Reach(t.Context(), h, a)
	if err != nil || got[0].Size != 5 || got[0].Err != nil || got[1].Err == nil {
		t.Errorf("%+v, %v", got, err)
	}
	a.URLs = nil
	_, err = f.Reach(t.Context(), h, a)
	if _, ok := errors.AsType[*AbsentError](err); !ok {
		t.Errorf("got %v", err)
	}
}
