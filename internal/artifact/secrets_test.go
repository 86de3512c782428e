package artifact

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// Passwords and signatures in URLs are neither shown nor sent to other servers.
func TestSecretsInURLs(t *testing.T) {
	var referer string
	other := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		referer = r.Header.Get("Referer")
		_, _ = w.Write([]byte("K"))
	})
	first := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.tls.URL+"/elsewhere", http.StatusFound)
	})
	if _, err := other.fetcher(Options{}).Stage(t.Context(), memory.New(), kubelet("", first.tls.URL+"/k?sig=hunter2")); err != nil || referer != "" {
		t.Errorf("referer %q, %v", referer, err)
	}
	odd := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://store.example:port/x?sig=hunter2")
		w.WriteHeader(http.StatusFound)
	})
	for _, url := range []string{odd.tls.URL + "/k", "oci://user:hunter2@registry.example/a:b", "ftp://user:hunter2@x/y", "https://user:hunter2@x:bad/y", "https://x/%zz?sig=hunter2"} {
		_, err := odd.fetcher(Options{Budget: 200 * time.Millisecond}).Stage(t.Context(), memory.New(), kubelet("", url))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
