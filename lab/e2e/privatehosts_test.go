package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// movedAPIServer is another address at which the lab's API server answers.
const movedAPIServer = "198.18.0.20"

// tagAPIServer has a tag of the machine name the API server's address.
func (c *cloudNode) tagAPIServer(address string) {
	c.tag(serve.Tag{Name: "owner", Value: "lab"}, serve.Tag{Name: "AKSapiServerIPAddress", Value: address})
}

// moveAPIServer gives the API server another address, and tells it by the tag.
func (c *cloudNode) moveAPIServer(t *testing.T) {
	t.Helper()
	takeAddress(t, c.lab, addr(t, movedAPIServer))
	c.tagAPIServer(movedAPIServer)
}

// findsAPIServer: the name that no name server knows leads to an address, for everybody.
func (c *cloudNode) findsAPIServer(t *testing.T, address string) {
	t.Helper()
	if got := strings.Fields(run(t, c.node, "getent", "ahostsv4", lab.PrivateAPIServerName)); got[0] != address {
		t.Errorf("%s is at %s, want %s", lab.PrivateAPIServerName, got[0], address)
	}
	if hosts := read(t, c.node, "/etc/hosts"); strings.Count(hosts, lab.PrivateAPIServerName) != 1 {
		t.Errorf("/etc/hosts:\n%s", hosts)
	}
	if got := run(t, c.node, "kubectl", "--cache-dir=/run/kube", "--kubeconfig", "/var/lib/kubelet/kubeconfig", "get", "node", c.node.Name, "-o", "name"); got != "node/"+c.node.Name+"\n" {
		t.Errorf("kubelet's identity sees %q", got)
	}
}

// awaitAPIServer waits for the timer, which nobody helps.
func (c *cloudNode) awaitAPIServer(t *testing.T, address string) {
	t.Helper()
	eventually(t, address+" in /etc/hosts", 30*time.Second, func() bool {
		return strings.Contains(read(t, c.node, "/etc/hosts"), address+" "+lab.PrivateAPIServerName)
	})
	c.findsAPIServer(t, address)
}
