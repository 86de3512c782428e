package apiserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/desired"
)

const discoveryToken = desired.Secret("abcdef.0123456789abcdef")

// informed is a server that says a text of itself, with a signature by a token.
type informed struct {
	*httptest.Server
	ca, pin string
	asked   []*http.Request
	info    core.ConfigMap
}

func newInformed(t *testing.T) *informed {
	t.Helper()
	s := &informed{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r)
		if r.URL.Path != clusterInfoPath {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(&s.info)
	}))
	t.Cleanup(s.Close)
	cert := s.Certificate()
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	s.ca, s.pin = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})), "sha256:"+hex.EncodeToString(sum[:])
	s.say(`{"clusters":[{"cluster":{"server":"https://elsewhere","certificate-authority-data":"` + base64.StdEncoding.EncodeToString([]byte(s.ca)) + `"}}]}`)
	return s
}

// say signs a text as the controller of the cluster does (RFC 7515, appendix F).
func (s *informed) say(text string) {
	id, secret, _ := strings.Cut(discoveryToken.Reveal(), ".")
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(head + "." + base64.RawURLEncoding.EncodeToString([]byte(text))))
	s.info.Data = map[string]string{clusterInfoKey: text, signaturePrefix + id: head + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))}
}

func TestClusterCA(t *testing.T) {
	s := newInformed(t)
	ca, err := ClusterCA(t.Context(), s.URL, s.pin, discoveryToken)
	if err != nil || string(ca) != s.ca {
		t.Fatalf("%s %v", ca, err)
	}
	for _, r := range s.asked {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token is sent to a server that nobody knows")
		}
	}
}

func TestClusterCAIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*informed)
		token  desired.Secret
		want   string
	}{
		"another CA":         {func(s *informed) { s.pin = "sha256:" + strings.Repeat("0", 64) }, discoveryToken, "public key"},
		"another token":      {func(*informed) {}, "abcdef.0000000000000000", "is not by token"},
		"a token of nobody":  {func(*informed) {}, "000000.0123456789abcdef", "expired"},
		"no token":           {func(*informed) {}, "", "no bootstrap token"},
		"a text of others":   {func(s *informed) { s.info.Data[clusterInfoKey] += " " }, discoveryToken, "is not by token"},
		"no algorithm":       {func(s *informed) { s.info.Data[signaturePrefix+"abcdef"] = "e30..e30" }, discoveryToken, "HS256"},
		"no kubeconfig":      {func(s *informed) { s.say("[]") }, discoveryToken, "kubeconfig"},
		"no cluster":         {func(s *informed) { s.say("{}") }, discoveryToken, "0 clusters"},
		"no such config map": {func(s *informed) { s.URL += "/elsewhere" }, discoveryToken, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInformed(t)
			c.change(s)
			_, err := ClusterCA(t.Context(), s.URL, s.pin, c.token)
			e, ok := errors.AsType[*DiscoveryError](err)
			if !ok || !strings.Contains(err.Error(), c.want) || e.Hint() == "" || strings.Contains(err.Error(), "0123456789") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// The cluster's controller signs a moment after a token was made, or the cluster started.
func TestClusterCAIsSignedSoon(t *testing.T) {
	s := newInformed(t)
	key := signaturePrefix + "abcdef"
	signature := s.info.Data[key]
	var early atomic.Int32
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		info := core.ConfigMap{Data: maps.Clone(s.info.Data)}
		if info.Data[key] = signature; early.Add(1) <= 2 {
			delete(info.Data, key)
		}
		_ = json.NewEncoder(w).Encode(&info)
	})
	if ca, err := ClusterCA(t.Context(), s.URL, s.pin, discoveryToken); err != nil || string(ca) != s.ca {
		t.Fatalf("%s %v", ca, err)
	}
}

// What the cluster says can be handed on by anybody: the server itself must be known by
// that CA.
func TestClusterCAOfAnother(t *testing.T) {
	s := newInformed(t)
	ca, _ := makePair(t, pkix.Name{CommonName: "kubernetes"}, "kubernetes")
	block, _ := pem.Decode(ca)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	s.say(`{"clusters":[{"cluster":{"certificate-authority-data":"` + base64.StdEncoding.EncodeToString(ca) + `"}}]}`)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if _, err := ClusterCA(t.Context(), s.URL, "sha256:"+hex.EncodeToString(sum[:]), discoveryToken); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Error(err)
	}
}
