package e2e

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestAnotherKubeconfig has kubelet's credential where the document's flags say: the node
// registers with it, provision-wait sees that, and a second run finds nothing to do.
func TestAnotherKubeconfig(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	const other = "/etc/kubernetes/other.conf"
	n := addNode(t, l, lab.NodeConfig{Name: "kubeconfig", UserData: customData(t, nodeConfig(t, l, flagged("--kubeconfig", other)))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	run(t, n, controllerPath, "provision-wait")
	if !n.Exists(other) || n.Exists("/var/lib/kubelet/kubeconfig") {
		t.Errorf("%s is there: %v, kubelet's usual one: %v", other, n.Exists(other), n.Exists("/var/lib/kubelet/kubeconfig"))
	}
	planIsEmpty(t, l, n)
	run(t, n, "systemctl", "restart", "kubelet.service")
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, l, n)
}
