package artifact

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

// Who can make the first mirror fail must not choose the content.
func TestMirrorWithoutDigest(t *testing.T) {
	good, evil := []byte("GOOD"), []byte("EVIL")
	gone, bad, right := newSite(t, http.NotFound), newSite(t, always(evil)), newSite(t, always(good))
	sum := "#sha256=" + sumOf(good)
	f := bad.fetcher(Options{})
	if _, err := f.Stage(t.Context(), memory.New(), kubelet("", gone.plain.URL+sum, bad.tls.URL)); !errors.As(err, new(*DigestError)) {
		t.Errorf("another content: %v", err)
	}
	if got, err := f.Stage(t.Context(), memory.New(), kubelet("", gone.plain.URL+sum, right.tls.URL)); err != nil || got.Unverified {
		t.Errorf("the same content: %+v, %v", got, err)
	}
	if _, err := f.Stage(t.Context(), memory.New(), kubelet("", gone.plain.URL+sum, gone.plain.URL+"#sha256="+sumOf(evil), bad.tls.URL)); !errors.As(err, new(*RefusedError)) {
		t.Errorf("two digests: %v", err)
	}
}

// A file that is not there is no reason not to ask the network, nor to wait.
func TestMirrorOnAMissingDisk(t *testing.T) {
	s := newSite(t, always([]byte("K")))
	if _, err := s.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", "file:///mnt/k", s.tls.URL)); err != nil || s.hits.Load() != 1 {
		t.Errorf("after %d requests: %v", s.hits.Load(), err)
	}
	_, err := s.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", "file:///mnt/k"))
	if e, ok := errors.AsType[*DownloadError](err); !ok || e.Attempts != 1 || !strings.Contains(err.Error(), "/mnt/k") {
		t.Errorf("got %v", err)
	}
}

// A list of digests knows a URL whose signature changes.
func TestDigestOfASignedURL(t *testing.T) {
	s := newSite(t, always([]byte("K")))
	m := memory.New()
	m.Put(DigestDir+"/list.json", `{"`+s.tls.URL+`/k":"`+sumOf([]byte("K"))+`"}`, 0o644)
	if got, err := s.fetcher(Options{RequireDigests: true}).Stage(t.Context(), m, kubelet("", s.tls.URL+"/k?sig=1")); err != nil || got.Unverified {
		t.Errorf("got %+v, %v", got, err)
	}
}
