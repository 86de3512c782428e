package identity

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

func TestNodeName(t *testing.T) {
	h := memory.New()
	if _, err := NodeName(h, "/k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a kubeconfig: %v", err)
	}
	write := func(user string) {
		h.Put("/k", `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],`+
			`"clusters":[{"name":"k","cluster":{"server":"https://a:1"}}],"users":[{"name":"u","user":`+user+`}]}`, 0o600)
	}
	write(`{"token":"abcdef.0123456789abcdef"}`)
	if name, err := NodeName(h, "/k"); name != "" || err != nil {
		t.Errorf("a token: %q, %v", name, err)
	}
	write(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"berth","interactiveMode":"Never"}}`)
	if name, err := NodeName(h, "/k"); name != "" || err != nil {
		t.Errorf("a plugin of nobody: %q, %v", name, err)
	}
	text, err := h.ReadFile("/k")
	if err != nil {
		t.Fatal(err)
	}
	h.Put("/k", strings.ReplaceAll(string(text), `"u"`, `"system:node:n2"`), 0o600)
	if name, err := NodeName(h, "/k"); name != "n2" || err != nil {
		t.Errorf("a plugin: %q, %v", name, err)
	}
	for who, want := range map[string]string{"system:node:n1": "n1", "somebody": ""} {
		certificate, key, err := SelfSigned([]string{who}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		h.Put("/cert", string(certificate)+string(key), 0o600)
		write(`{"client-certificate":"/cert","client-key":"/cert"}`)
		if name, err := NodeName(h, "/k"); name != want || err != nil {
			t.Errorf("%s: %q, %v", who, name, err)
		}
	}
}

// Two kubeconfigs are of one cluster where their CAs share a key, whatever name leads
// there; the name alone counts only where one has no CA.
func TestSameCluster(t *testing.T) {
	h := memory.New()
	ca := func(name string) string {
		certificate, _, err := SelfSigned([]string{name}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		h.Put("/"+name, string(certificate), 0o644)
		return "/" + name
	}
	write := func(path, server, ca string) {
		h.Put(path, `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],`+
			`"clusters":[{"name":"k","cluster":{"server":"`+server+`","certificate-authority":"`+ca+`"}}],"users":[{"name":"u","user":{"token":"t"}}]}`, 0o600)
	}
	one, two := ca("one"), ca("two")
	for name, c := range map[string]struct {
		server, ca string
		same       bool
	}{
		"itself":                        {"https://a:6443", one, true},
		"another name of its":           {"https://b:6443", one, true},
		"another one of its address":    {"https://a:6443", two, false},
		"without a CA, its address":     {"https://A:6443/", "", true},
		"without a CA, another address": {"https://b:6443", "", false},
	} {
		write("/a", "https://a:6443", one)
		write("/b", c.server, c.ca)
		if same, err := SameCluster(h, "/a", "/b"); same != c.same || err != nil {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
	if _, err := SameCluster(h, "/a", "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without one: %v", err)
	}
}
