package provision

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestReferredFiles(t *testing.T) {
	h := memory.New()
	h.Put("/ca", "ca", 0o600)
	f, err := Refer(t.Context(), h, component.References{Files: []string{"/absent", "/ca"}}, component.Facts{Hostname: "n"})
	if _, there := f.Files["/absent"]; err != nil || there || string(f.Files["/ca"]) != "ca" || f.Hostname != "n" {
		t.Errorf("%v %v", f, err)
	}
}

// A machine that has the CA asks nobody, and needs no token: it may be gone.
func TestKnownClusterIsNotAsked(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	pin := func(c *x509.Certificate) string {
		sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	h := memory.New()
	h.Put("/known", string(ca), 0o600)
	d := &component.Discovery{Server: "https://127.0.0.1:1", Known: "/known", TokenFile: "/gone", Pin: pin(s.Certificate())}
	f, err := Refer(t.Context(), h, component.References{Discovery: d}, component.Facts{})
	if err != nil || string(f.ClusterCA) != string(ca) {
		t.Errorf("%v %v", f, err)
	}
	d.Pin = "sha256:00"
	if _, err := Refer(t.Context(), h, component.References{Discovery: d}, component.Facts{}); err == nil {
		t.Error("a cluster is asked without a token")
	}
}
