package kubeconfig

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

const inline = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://api", certificate-authority-data: Q0E=}}]
users: [{name: u, user: {token: abcdef.0123456789abcdef, client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}]
`

func TestRead(t *testing.T) {
	m := memory.New()
	m.Put("/k/inline", inline, 0o600)
	m.Put("/k/files", strings.NewReplacer("certificate-authority-data: Q0E=", "certificate-authority: ca", "client-certificate-data: Q0VSVA==", "client-certificate: current",
		"client-key-data: S0VZ", "client-key: /k/current", "token: abcdef.0123456789abcdef", "tokenFile: token").Replace(inline), 0o600)
	m.Put("/k/ca", "CA", 0o644)
	m.Put("/k/pair", "PAIR", 0o600)
	m.Put("/k/token", "secret\n", 0o600)
	m.PutLink("pair", "/k/current", 0)
	c, err := Read(m, "/k/inline")
	if err != nil || string(c.CA) != "CA" || string(c.Certificate) != "CERT" || string(c.Key) != "KEY" || c.Token.Reveal() != "abcdef.0123456789abcdef" || c.CAFile != "" {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = Read(m, "/k/files")
	if err != nil || string(c.CA) != "CA" || string(c.Certificate) != "PAIR" || string(c.Key) != "PAIR" || c.Token.Reveal() != "secret" || c.CAFile != "/k/ca" {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := m.Remove("/k/ca"); err != nil {
		t.Fatal(err)
	}
	if c, err = Read(m, "/k/files"); err != nil || len(c.CA) != 0 {
		t.Errorf("without CA file: %+v, %v", c, err)
	}
	if err := m.Remove("/k/pair"); err != nil {
		t.Fatal(err)
	}
	if _, err = Read(m, "/k/files"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without pair: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{"current-context: c", "current-context: x", `no context "x"`},
		{"cluster: k", "cluster: x", `no cluster "x"`},
		{"user: u}", "user: x}", `no user "x"`},
		{`server: "https://api"`, `server: ""`, "names no server"},
		{"contexts: [", "contexts: [[", "parse kubeconfig"},
	} {
		if _, err := Parse([]byte(strings.Replace(inline, tc.old, tc.new, 1)), "/"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", tc.new, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(inline))
	f.Add([]byte("{}"))
	text, err := ForKubelet("https://api", "/ca", "/pair")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, "/dir")
		if err == nil && c.Server == "" {
			t.Error("no server and no error")
		}
	})
}
