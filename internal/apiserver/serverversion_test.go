package apiserver

import (
	"net/http"
	"testing"
)

func TestServerVersion(t *testing.T) {
	for text, want := range map[string]string{`{"gitVersion":"v1.36.3","major":"1"}`: "v1.36.3", "<html>": ""} {
		s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			answer(w, 200, text)
		}))
		c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.ServerVersion(t.Context())
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
		c.Close()
	}
}
