package apicheck

import (
	"net/url"
	"testing"
	"time"
)

func TestEndpoint(t *testing.T) {
	for name, want := range map[string]struct {
		host string
		port int
		url  string
	}{
		"api.example":      {"api.example", 443, "https://api.example:443"},
		"api.example:6443": {"api.example", 6443, "https://api.example:6443"},
		"10.0.0.1":         {"10.0.0.1", 443, "https://10.0.0.1:443"},
		"fd00::1":          {"fd00::1", 443, "https://[fd00::1]:443"},
		"[fd00::1]":        {"fd00::1", 443, "https://[fd00::1]:443"},
		"[fd00::1]:6443":   {"fd00::1", 6443, "https://[fd00::1]:6443"},
	} {
		host, port := Endpoint(name)
		if host != want.host || port != want.port || URL(name) != want.url {
			t.Errorf("%s: %s, %d, %s", name, host, port, URL(name))
		}
		if _, err := url.Parse(URL(name)); err != nil {
			t.Error(err)
		}
		if err := Resource(name, "", time.Minute).Validate(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"a", "a:1", "[::1]:443", "a:b", ":", "[]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if host, _ := Endpoint(name); len(host) > len(name) {
			t.Errorf("%q became %q", name, host)
		}
	})
}
