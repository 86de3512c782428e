package provision

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/desired"
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

// What Azure said of a cluster is on the machine: nobody is asked for a token again.
func TestKnownAzureClusterIsNotAsked(t *testing.T) {
	h := memory.New()
	text, err := azurecluster.Marshal(azurecluster.Cluster{ResourceID: "/A", Server: "https://a:443", CA: "ca"})
	if err != nil {
		t.Fatal(err)
	}
	h.Put(azurecluster.Path, string(text), 0o600)
	unusable := &desired.AzureIdentity{Kind: desired.AzureCLI} // there is no az
	f, err := Refer(t.Context(), h, component.References{Azure: &component.AzureCluster{ResourceID: "/a", Identity: unusable}}, component.Facts{})
	if err != nil || f.ClusterServer != "https://a:443" || string(f.ClusterCA) != "ca" {
		t.Errorf("%+v %v", f, err)
	}
	if _, err := Refer(t.Context(), h, component.References{Azure: &component.AzureCluster{ResourceID: "/b", Identity: unusable}}, component.Facts{}); err == nil {
		t.Error("another cluster is taken for it")
	}
}
