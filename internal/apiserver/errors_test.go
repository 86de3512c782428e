package apiserver

import (
	"strings"
	"testing"
)

// A server that does not answer may be behind a proxy that nobody meant for it; the
// proxy's password stays out of what is said.
func TestHintNamesTheProxy(t *testing.T) {
	e := &Error{Layer: LayerTCP, Host: "api.example:443"}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	if said := e.Hint(); strings.Contains(said, "proxy") {
		t.Error(said)
	}
	t.Setenv("HTTPS_PROXY", "http://user:secret@proxy.example:3128")
	if said := e.Hint(); !strings.Contains(said, "proxy proxy.example:3128 ") || strings.Contains(said, "secret") {
		t.Error(said)
	}
	t.Setenv("NO_PROXY", "api.example")
	if said := e.Hint(); strings.Contains(said, "proxy") {
		t.Error(said)
	}
}
