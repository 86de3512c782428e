package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requestOf is a kubelet's certificate request in a state.
func requestOf(t *testing.T, name, node string, at time.Time, states ...certificates.RequestConditionType) certificates.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node}}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := certificates.CertificateSigningRequest{ObjectMeta: meta.ObjectMeta{Name: name, CreationTimestamp: meta.NewTime(at)}}
	r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	for _, s := range states {
		r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{Type: s, Status: core.ConditionTrue, Reason: "Because"})
	}
	return r
}

// TestWhyKubeletHasNoCredential is a kubelet that bootstraps itself.
func TestWhyKubeletHasNoCredential(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name     string
		requests []certificates.CertificateSigningRequest
		status   int
		reason   Reason
		detail   string
	}{
		{"pending", []certificates.CertificateSigningRequest{requestOf(t, "old", "n1", now, certificates.CertificateDenied), requestOf(t, "new", "n1", now.Add(time.Hour)), requestOf(t, "other", "n2", now.Add(2*time.Hour))}, 200, ReasonCSRPending, "request new of 2026-11-21T01:00:00Z is not approved"},
		{"unsigned", []certificates.CertificateSigningRequest{requestOf(t, "a", "n1", now, certificates.CertificateApproved)}, 200, ReasonCSRPending, "approved but not signed"},
		{"denied", []certificates.CertificateSigningRequest{requestOf(t, "a", "n1", now, certificates.CertificateDenied)}, 200, ReasonCSRDenied, "Denied"},
		{"none", nil, 200, ReasonNoCredential, "kubeconfig"},
		{"unknown token", nil, 401, ReasonUnauthorized, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t).start()
			api, ca := serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				out.Header().Set("Content-Type", "application/json")
				out.WriteHeader(tc.status)
				if tc.status != 200 {
					_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
					return
				}
				_ = json.NewEncoder(out).Encode(certificates.CertificateSigningRequestList{
					TypeMeta: meta.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}, Items: tc.requests})
			}))
			w.m.Put("/ca", ca, 0o644)
			w.m.Put("/var/lib/kubelet/bootstrap-kubeconfig", `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],`+
				`"clusters":[{"name":"k","cluster":{"server":"`+api.URL+`","certificate-authority":"/ca"}}],"users":[{"name":"u","user":{"token":"abcdef.0123456789abcdef"}}]}`, 0o600)
			watcher := w.watcher(healthy)
			watcher.BootstrapKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"
			e, ok, err := waitLongEnough(t, watcher, MilestoneRegistered, func(e *MilestoneError) bool {
				return e.Reason == tc.reason && strings.Contains(e.Detail, tc.detail)
			})
			if !ok || e.Reason != tc.reason || !strings.Contains(e.Detail, tc.detail) || e.Remedy == "" {
				t.Errorf("got %#v", err)
			}
		})
	}
}
