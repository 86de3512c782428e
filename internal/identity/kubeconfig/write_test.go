package kubeconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, want := range map[string]*Config{
		"token":       {Server: "https://api", CAFile: "/ca.crt", Token: "abcdef.0123456789abcdef"},
		"certificate": {Server: "https://api", CA: []byte("CA"), Certificate: []byte("CERT"), Key: []byte("KEY")},
	} {
		text, err := want.Text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(text, "/")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want.User = "default"
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
