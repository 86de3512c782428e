package provision

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestReferredFiles(t *testing.T) {
	h := memory.New()
	h.Put("/ca", "ca", 0o600)
	f, err := Refer(t.Context(), h, component.References{Files: []string{"/absent", "/ca"}}, component.Facts{Hostname: "n"}, unobserved)
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
	f, err := Refer(t.Context(), h, component.References{Discovery: d}, component.Facts{}, unobserved)
	if err != nil || string(f.ClusterCA) != string(ca) {
		t.Errorf("%v %v", f, err)
	}
	d.Pin = "sha256:00"
	if _, err := Refer(t.Context(), h, component.References{Discovery: d}, component.Facts{}, unobserved); err == nil {
		t.Error("a cluster is asked without a token")
	}
}

// clusterInAzure is a machine to which Azure said of a cluster what is not so any more, and
// an Azure Resource Manager that says how it is now.
func clusterInAzure(t *testing.T) (h *memory.Host, r component.References, asked *int, status *int) {
	t.Helper()
	h, asked, status = memory.New(), new(int), new(int)
	*status = http.StatusOK
	text, err := azurecluster.Marshal(azurecluster.Cluster{ResourceID: "/A", Server: "https://a:443", CA: pairOf(t, time.Time{}, time.Time{})})
	if err != nil {
		t.Fatal(err)
	}
	h.Put(azurecluster.Path, string(text), 0o600)
	k := `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://new:443", certificate-authority-data: ` + base64.StdEncoding.EncodeToString([]byte(pairOf(t, time.Time{}, time.Time{}))) + `}}]
users: [{name: u, user: {token: x}}]
`
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		w.WriteHeader(*status)
		fmt.Fprintf(w, `{"kubeconfigs":[{"value":%q}]}`, base64.StdEncoding.EncodeToString([]byte(k)))
	}))
	t.Cleanup(s.Close)
	h.Program("/usr/bin/az", func(host.Command) host.Output {
		claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"aud":%q,"tid":"t","exp":%d}`, s.URL, h.Now().Add(time.Hour).Unix()))
		return host.Output{Stdout: fmt.Appendf(nil, `{"accessToken":"e30.%s.c2ln"}`, claims)}
	})
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	identity := &desired.AzureIdentity{Kind: desired.AzureCLI, ServerID: azureidentity.AKS}
	return h, component.References{Azure: &component.AzureCluster{ResourceID: "/a", Manager: s.URL, Identity: identity, Via: &desired.Egress{CAs: []string{ca}}}}, asked, status
}

// pairOf is a certificate of a node with its key, PEM.
func pairOf(t *testing.T, from, to time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}))
}

// node gives the machine a certificate of the cluster of before.
func node(t *testing.T, h *memory.Host, left time.Duration) {
	t.Helper()
	text, err := h.ReadFile(azurecluster.Path)
	if err != nil {
		t.Fatal(err)
	}
	known, err := azurecluster.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	h.Put(kubelet.CAFile, known.CA, 0o644)
	h.Put("/var/lib/kubelet/pki/pair.pem", pairOf(t, h.Now().Add(-time.Hour), h.Now().Add(left)), 0o600)
	h.Put(kubelet.Kubeconfig, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "`+known.Server+`", certificate-authority: `+kubelet.CAFile+`}}]
users: [{name: u, user: {client-certificate: pki/pair.pem, client-key: pki/pair.pem}}]
`, 0o600)
}

// What Azure said of a cluster counts while the machine is a node of it: else the cluster
// may have been made anew, and only where Azure does not answer what is known serves.
func TestKnownAzureCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(h *memory.Host, r *component.References, status *int)
		server  string // "" is an error
		asked   bool
	}{
		"a node":           {func(h *memory.Host, _ *component.References, _ *int) { node(t, h, time.Hour) }, "https://a:443", false},
		"a node of before": {func(h *memory.Host, _ *component.References, _ *int) { node(t, h, -time.Minute) }, "https://new:443", true},
		"none yet":         {func(*memory.Host, *component.References, *int) {}, "https://new:443", true},
		"another cluster": {func(h *memory.Host, r *component.References, _ *int) {
			node(t, h, time.Hour)
			r.Azure.ResourceID = "/b"
		}, "https://new:443", true},
		"refused":           {func(_ *memory.Host, _ *component.References, status *int) { *status = http.StatusNotFound }, "", true},
		"nobody answers":    {func(_ *memory.Host, r *component.References, _ *int) { r.Azure.Via = nil }, "https://a:443", false},
		"no token":          {func(h *memory.Host, _ *component.References, _ *int) { _ = h.Remove("/usr/bin/az") }, "https://a:443", false},
		"nobody, elsewhere": {func(_ *memory.Host, r *component.References, _ *int) { r.Azure.Via, r.Azure.ResourceID = nil, "/b" }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, r, asked, status := clusterInAzure(t)
			tc.arrange(h, &r, status)
			if got, want := Settled(h, r, ""), name == "a node"; got != want {
				t.Errorf("settled: %v", got)
			}
			f, err := Refer(t.Context(), h, r, component.Facts{}, unobserved)
			if f.ClusterServer != tc.server || (err == nil) != (tc.server != "") || (*asked > 0) != tc.asked {
				t.Errorf("%q, %v, asked %d times", f.ClusterServer, err, *asked)
			}
		})
	}
}

// A node is settled in the cluster that its document names, and in no other.
func TestSettled(t *testing.T) {
	h, _, _, _ := clusterInAzure(t)
	if Settled(h, component.References{}, "https://a:443") {
		t.Error("it is no node")
	}
	node(t, h, time.Hour)
	for server, want := range map[string]bool{"https://a": true, "https://b": false} {
		if got := Settled(h, component.References{}, server); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}
