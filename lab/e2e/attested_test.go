package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

const (
	attestUnit = "secure-tls-bootstrap.service"
	// attestCalls has what the cloud's program was called with, a line for each word.
	attestCalls = "/run/lab-attest"
	// attestGives is what the program obtains.
	attestGives = "/opt/lab/attest"
)

// attestClient has the place of the cloud's program: it writes how it was called, keeps its
// log where it is told, and leaves what it obtained unless that is there.
const attestClient = `#!/bin/sh -e
printf '%s\n' "$@" >>` + attestCalls + `
for word; do
	case $word in
	--kubeconfig=*) config=${word#*=} ;;
	--cert-dir=*) dir=${word#*=} ;;
	--log-file=*) echo attested >>"${word#*=}" ;;
	esac
done
if [ -s "$config" ]; then exit 0; fi
mkdir -p "$dir"
install -m 600 ` + attestGives + `/client.pem "$dir/kubelet-client-attested.pem"
ln -s kubelet-client-attested.pem "$dir/kubelet-client-current.pem"
install -m 600 ` + attestGives + `/kubeconfig "$config"
`

// attestConfig is the kubeconfig that such a program leaves.
const attestConfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://` + lab.PrivateAPIServerName + `:443", certificate-authority: /etc/kubernetes/certs/ca.crt}}]
users: [{name: u, user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem, client-key: /var/lib/kubelet/pki/kubelet-client-current.pem}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// attestFiles are the program, and the certificate of the node that it obtains.
func attestFiles(t *testing.T, l *lab.Lab, node string) map[string]lab.File {
	t.Helper()
	ctx := within(t, time.Minute)
	csr, key, err := requestCertificate(ctx, l.Client(), "attested-", "system:node:"+node, "system:nodes")
	check(t, err)
	check(t, approve(ctx, l.Client(), csr))
	return map[string]lab.File{
		"/opt/bin/aks-secure-tls-bootstrap-client": {Content: []byte(attestClient), Mode: 0o755},
		attestGives + "/kubeconfig":                {Content: []byte(attestConfig), Mode: 0o600},
		attestGives + "/client.pem":                {Content: append(signed(t, l, csr.Name), key...), Mode: 0o600},
	}
}

func attests(c *aksnodeconfigv1.Configuration) {
	c.BootstrappingConfig = &aksnodeconfigv1.BootstrappingConfig{
		BootstrappingAuthMethod:                      aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING,
		SecureTlsBootstrappingUserAssignedIdentityId: proto.String(puller),
		SecureTlsBootstrappingGetNonceTimeout:        proto.String("5s"),
	}
}

// attested: the program was told of this node's cluster, and kubelet is who the program made
// it, whoever starts kubelet.
func (c *cloudNode) attested(t *testing.T) {
	t.Helper()
	n := c.node
	calls := read(t, n, attestCalls)
	for _, word := range []string{"--apiserver-fqdn=" + lab.PrivateAPIServerName, "--user-assigned-identity-id=" + puller, "--get-nonce-timeout=5s", "--ensure-authorized"} {
		if strings.Count("\n"+calls+"\n", "\n"+word+"\n") != 1 {
			t.Errorf("no %s, or not once, in\n%s", word, calls)
		}
	}
	started(t, n, "secure-tls-bootstrap", "kubelet")
	gave := run(t, n, "sh", "-ec", "openssl x509 -noout -serial -in "+attestGives+"/client.pem; openssl x509 -noout -serial -in /var/lib/kubelet/pki/kubelet-client-current.pem")
	if serials := strings.Fields(gave); len(serials) != 2 || serials[0] != serials[1] {
		t.Errorf("kubelet has another certificate: %s", gave)
	}
	run(t, n, "test", "-s", "/var/log/azure/aks/secure-tls-bootstrap.log")
	run(t, n, "systemctl", "stop", "kubelet", attestUnit)
	again := time.Now()
	run(t, n, "systemctl", "start", "kubelet")
	run(t, n, "systemctl", "is-active", attestUnit)
	started(t, n, "secure-tls-bootstrap", "kubelet")
	awaitHeartbeat(t, c.lab, n.Name, again)
}

// started: units became active in this order, and are.
func started(t *testing.T, n *lab.Node, units ...string) {
	t.Helper()
	var last int64
	for _, u := range units {
		said := run(t, n, "systemctl", "show", "-p", "ActiveState", "-p", "ActiveEnterTimestampMonotonic", "-p", "ExecMainStartTimestampMonotonic", u)
		var active, began int64
		for line := range strings.Lines(said) {
			_, _ = fmt.Sscanf(line, "ActiveEnterTimestampMonotonic=%d", &active)
			_, _ = fmt.Sscanf(line, "ExecMainStartTimestampMonotonic=%d", &began)
		}
		if !strings.Contains(said, "ActiveState=active\n") || active == 0 || began < last {
			t.Errorf("%s, after %d: %s", u, last, said)
		}
		last = active
	}
}
