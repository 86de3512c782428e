package identity

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-dev/berth/internal/desired"
)

const (
	testToken = "abcdef.0123456789abcdef"
	requests  = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// cluster is an API server that takes certificate requests and decides on them.
type cluster struct {
	t      *testing.T
	server *httptest.Server
	ca     string
	signer *ecdsa.PrivateKey
	root   *x509.Certificate

	mu      sync.Mutex
	csr     *certificates.CertificateSigningRequest
	posts   int
	token   string        // that it knows
	refusal int           // status of each POST; 0 takes it
	loseOne bool          // the first POST is taken and its answer lost
	deaf    bool          // no watch is answered
	delay   time.Duration // before it decides
	decide  func(*certificates.CertificateSigningRequest)
	change  chan struct{}

	// node and lease are those of n1, which a node's certificate may read; nil for none.
	node  func() *core.Node
	lease func() *coordination.Lease
	asked []string // with a node's certificate
	from  []string // over which connections
	busy  int      // answers to them that are to be errors
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, token: testToken, change: make(chan struct{})}
	c.signer, _ = newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &c.signer.PublicKey, c.signer)
	if err != nil {
		t.Fatal(err)
	}
	c.root, _ = x509.ParseCertificate(der)
	c.decide = c.sign
	c.server = httptest.NewUnstartedServer(c)
	c.server.EnableHTTP2 = true
	c.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(func() { c.server.CloseClientConnections(); c.server.Close() })
	c.ca = string(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.server.Certificate().Raw}))
	return c
}

func (c *cluster) wants(timeout time.Duration) *desired.ClientCertificate {
	return &desired.ClientCertificate{NodeName: "n1", Server: c.server.URL, CA: c.ca, CAFile: "/etc/kubernetes/certs/ca.crt", Token: testToken,
		Kubeconfig: "/var/lib/kubelet/kubeconfig", CertDir: "/var/lib/kubelet/pki", Timeout: timeout}
}

// ServeHTTP is the API.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	switch {
	case len(r.TLS.PeerCertificates) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == "system:node:n1":
		c.ofNode(w, r)
	case r.Header.Get("Authorization") != "Bearer "+token:
		answer(w, http.StatusUnauthorized, "Unauthorized")
	case r.Method == http.MethodPost && r.URL.Path == requests:
		c.post(w, r)
	case r.URL.Query().Get("watch") != "" && c.deaf:
		answer(w, http.StatusGatewayTimeout, "Timeout")
	case r.URL.Query().Get("watch") != "":
		c.follow(w, r)
	case path.Dir(r.URL.Path) == requests:
		c.get(w)
	default:
		answer(w, http.StatusNotFound, "NotFound")
	}
}

func answer(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`, reason, status)
}

func (c *cluster) post(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts++
	sent := &certificates.CertificateSigningRequest{}
	switch err := json.NewDecoder(r.Body).Decode(sent); {
	case err != nil:
		answer(w, http.StatusBadRequest, "BadRequest")
		return
	case c.refusal != 0:
		answer(w, c.refusal, http.StatusText(c.refusal))
		return
	case c.csr != nil && c.csr.Name == sent.Name:
		answer(w, http.StatusConflict, "AlreadyExists")
		return
	}
	sent.TypeMeta = meta.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
	sent.CreationTimestamp, sent.ResourceVersion = meta.Now(), "1"
	c.csr = sent
	time.AfterFunc(c.delay, func() {
		c.update(c.decide)
	})
	if c.loseOne && c.posts == 1 {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(sent)
}

func (c *cluster) get(w http.ResponseWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.csr == nil {
		answer(w, http.StatusNotFound, "NotFound")
		return
	}
	_ = json.NewEncoder(w).Encode(c.csr)
}

// remove deletes the request.
func (c *cluster) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.csr = nil
	close(c.change)
	c.change = make(chan struct{})
}

// update changes the request as a controller would.
func (c *cluster) update(f func(*certificates.CertificateSigningRequest)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.csr == nil {
		return
	}
	next := c.csr.DeepCopy()
	f(next)
	next.ResourceVersion += "1"
	c.csr = next
	close(c.change)
	c.change = make(chan struct{})
}

// follow sends each version after the one that was asked for.
func (c *cluster) follow(w http.ResponseWriter, r *http.Request) {
	have := r.URL.Query().Get("resourceVersion")
	last := []byte(`{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1"}`)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		c.mu.Lock()
		now, change := c.csr, c.change
		c.mu.Unlock()
		if now == nil {
			_ = json.NewEncoder(w).Encode(meta.WatchEvent{Type: "DELETED", Object: runtime.RawExtension{Raw: last}})
			return
		}
		if now.ResourceVersion != have {
			last, _ = json.Marshal(now)
			_ = json.NewEncoder(w).Encode(meta.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: last}})
			_ = http.NewResponseController(w).Flush()
			have = now.ResourceVersion
		}
		select {
		case <-change:
		case <-r.Context().Done():
			return
		}
	}
}

func approve(r *certificates.CertificateSigningRequest) {
	r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: core.ConditionTrue, Reason: "AutoApproved"})
}

// sign approves and signs, as long as it is the request of a kubelet.
func (c *cluster) sign(r *certificates.CertificateSigningRequest) {
	approve(r)
	block, _ := pem.Decode(r.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		c.t.Error(err)
		return
	}
	r.Status.Certificate = c.issue(csr.Subject, csr.PublicKey.(*ecdsa.PublicKey), time.Hour)
}

func (c *cluster) issue(subject pkix.Name, key *ecdsa.PublicKey, life time.Duration) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: subject, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, c.root, key, c.signer)
	if err != nil {
		c.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})
}
