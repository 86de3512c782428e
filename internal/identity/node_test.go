package identity

import (
	"errors"
	"io/fs"
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
