package e2e

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// cloudCAUnit is what the timer starts.
const cloudCAUnit = "berth-cloud-ca.service"

// cloudService is something in a cloud whose certificate is of that cloud's own authority.
type cloudService struct{ url, ca string }

// startService serves something with a certificate of an authority of its own.
func (c *cloudNode) startService(t *testing.T) cloudService {
	t.Helper()
	cert, err := serve.Stranger(c.lab.Gateway().String())
	if err != nil {
		t.Fatal(err)
	}
	port := listen(t, c.lab, func(l net.Listener) *serve.Server {
		return serve.StartTLS(l, cert, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	})
	return cloudService{fmt.Sprintf("https://%s:%d/", c.lab.Gateway(), port), authority(cert)}
}

// caOf is an authority that has signed for a name.
func caOf(t *testing.T, name string) string {
	t.Helper()
	cert, err := serve.Stranger(name)
	if err != nil {
		t.Fatal(err)
	}
	return authority(cert)
}

func authority(cert tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
}

// trusted: what the machine's own trust store says is enough for a connection.
func (s cloudService) trusted(t *testing.T, n *lab.Node) {
	t.Helper()
	if got := run(t, n, "curl", "-sS", s.url); got != "here" {
		t.Errorf("%s answers %q", s.url, got)
	}
}

// strange: the connection fails by the certificate alone.
func (s cloudService) strange(t *testing.T, n *lab.Node) {
	t.Helper()
	r, err := n.Exec(within(t, 30*time.Second), "curl", "-sS", s.url)
	if err != nil || r.Code == 0 || !strings.Contains(string(r.Stderr), "certificate") {
		t.Errorf("%s: %v, exit code %d\n%s", s.url, err, r.Code, r.Stderr)
	}
}

// asksAgain: the timer has its next time, and starts what asks.
func asksAgain(t *testing.T, n *lab.Node) {
	t.Helper()
	said := run(t, n, "systemctl", "show", "-p", "ActiveState", "-p", "Unit", "-p", "NextElapseUSecRealtime", "-p", "Persistent", "berth-cloud-ca.timer")
	if !containsAll(said, "ActiveState=active\n", "Unit="+cloudCAUnit+"\n", "Persistent=yes\n", "19:0") {
		t.Errorf("the timer: %s", said)
	}
}
