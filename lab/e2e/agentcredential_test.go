package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/lab"
)

// foreignCertificate is of no CA that the cluster knows, and otherwise this agent's: only
// the API server can tell.
func (m *agentMachine) foreignCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		Subject:     pkix.Name{CommonName: "gardener.cloud:node-agent:machine:" + m.node.Name, Organization: []string{m.group}}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &pair.PublicKey, pair)
	check(t, err)
	raw, err := x509.MarshalECPrivateKey(pair)
	check(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// certificateUnknown: a certificate that has not expired and that the cluster does not
// know is told at once, with what to do; the token gets the agent another one.
func (m *agentMachine) certificateUnknown(t *testing.T) {
	const file = agentDir + "/credentials/kubeconfig"
	text, err := m.node.ReadFile(file)
	check(t, err)
	c, err := clientcmd.Load(text)
	check(t, err)
	for _, a := range c.AuthInfos {
		a.ClientCertificateData, a.ClientKeyData = m.foreignCertificate(t)
	}
	text, err = clientcmd.Write(*c)
	check(t, err)
	run(t, m.node, "systemctl", "stop", agentUnit)
	check(t, m.node.WriteFile(file, text, 0o600))
	run(t, m.node, "systemctl", "start", agentUnit)
	eventually(t, "the word of it", 40*time.Second, func() bool {
		says := run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit)
		return strings.Contains(says, "ERR_") && strings.Contains(says, "bootstrap token") && strings.Contains(says, "kubeadm token create")
	})
	t.Log(run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit))
	check(t, m.node.WriteFile(agentDir+"/credentials/bootstrap-token", []byte(lab.Token), 0o600))
	m.applied(t, m.ask(t, hello("known again")))
	if says := strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit)); says != "" {
		t.Errorf("it still says %q", says)
	}
}
