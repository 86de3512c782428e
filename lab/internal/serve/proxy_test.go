package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestProxy(t *testing.T) {
	p := NewProxy("lab", "secret", map[string]http.Handler{"known.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "behind "+r.URL.Path)
	})})
	s := httptest.NewServer(p)
	defer s.Close()
	for _, c := range []struct {
		user   *url.Userinfo
		to     string
		status int
		body   string
	}{
		{url.UserPassword("lab", "secret"), "http://known.example/x", http.StatusOK, "behind /x"},
		{nil, "http://known.example/x", http.StatusProxyAuthRequired, ""},
		{url.UserPassword("lab", "secret"), "http://other.example/x", http.StatusBadGateway, "the proxy knows no other.example\n"},
	} {
		at, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		at.User = c.user
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
		resp, err := client.Get(c.to)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || string(body) != c.body {
			t.Errorf("%s as %v: %d %q, %v", c.to, c.user, resp.StatusCode, body, err)
		}
	}
	if n := len(p.Requests()); n != 3 {
		t.Errorf("%d requests in the log", n)
	}
}
