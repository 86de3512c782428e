package artifact

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
)

// Ten downloads that nobody reads hold a bounded part of what was sent.
func TestMemoryOfHTTP2(t *testing.T) {
	chunk := random(1 << 20)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 8 {
			_, _ = w.Write(chunk)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	client := newClient()
	client.Transport.(*http.Transport).TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	before := heap()
	for range 10 {
		fl, err := (&web{client: client, url: mustURL(s.URL)}).open(t.Context(), 0, "")
		if err != nil {
			t.Fatal(err)
		}
		defer fl.body.Close()
	}
	var most int64
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		most = max(most, heap()-before)
	}
	if most > 20<<20 {
		t.Errorf("%d MiB", most>>20)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
