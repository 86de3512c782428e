package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// capturedImage makes a machine of another name from a node's disk: it becomes
// a node of its own, by its own configuration.
func capturedImage(t *testing.T, l *lab.Lab, n *lab.Node, cfg *aksnodeconfigv1.Configuration, reg *images) {
	old := read(t, n, resultPath)
	cfg.KubeletConfig.KubeletNodeLabels["agentpool"] = "copies"
	second := capture(t, l, n, "case-copy", customData(t, cfg))
	if archived := run(t, second, "sh", "-c", "cat /var/log/azure/aks/provision.*.json"); strings.TrimSpace(archived) != old {
		t.Errorf("the image's result is not kept: %s", archived)
	}
	node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), second.Name, metav1.GetOptions{})
	if err != nil || node.Labels["agentpool"] != "copies" {
		t.Errorf("labels %v, %v", node.Labels, err)
	}
	checkWorkload(t, l, reg, reg.workload, "copy-pod", second)
	deletePod(t, l, "copy-pod")
}

// capturedLate makes one more from the same user data. Its kubelet is up, as
// its origin's, before provisioning begins.
func capturedLate(t *testing.T, l *lab.Lab, n *lab.Node, cfg *aksnodeconfigv1.Configuration, reg *images) {
	second := *n
	second.Name = "case-copy"
	run(t, &second, "sh", "-c", `d=/etc/systemd/system/aks-node-controller.service.d; mkdir -p $d; cat >$d/late.conf <<'E'
[Service]
ExecStartPre=/bin/sh -c 'for i in $(seq 100); do systemctl -q is-active kubelet && exit; sleep 0.1; done; exit 1'
E`)
	third := capture(t, l, &second, "case-late", customData(t, cfg))
	checkWorkload(t, l, reg, reg.workload, "late-pod", third)
}

// capture makes a machine of another name and instance-id from a node's disk,
// and waits until it is a node. The first node is gone then, as machines are
// whose disks are captured.
func capture(t *testing.T, l *lab.Lab, n *lab.Node, name string, userData []byte) *lab.Node {
	t.Helper()
	start := time.Now()
	if err := n.Stop(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := l.Client().CoreV1().Nodes().Delete(within(t, 10*time.Second), n.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := *n
	second.Name = name
	if err := second.SetInstance("i-"+name, userData); err != nil {
		t.Fatal(err)
	}
	if err := second.Start(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	status := runCSE(t, &second)
	if _, err := l.WaitNodeReady(within(t, time.Minute), second.Name); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped and started in %.1f s, Ready %.1f s later", up.Sub(start).Seconds(), time.Since(up).Seconds())
	checkStatus(t, status())
	checkOwnResult(t, &second, "i-"+name)
	planIsEmpty(t, l, &second)
	if nodes := kubectl(t, l, "get", "nodes", "-o", "name"); strings.Contains(nodes, "node/"+n.Name+"\n") || strings.Contains(nodes, "node/image\n") {
		t.Errorf("nodes:\n%s", nodes)
	}
	return &second
}

// checkOwnResult proves that a result is this machine's and not its image's.
func checkOwnResult(t *testing.T, n *lab.Node, instance string) {
	t.Helper()
	var result struct{ Berth struct{ InstanceID string } }
	if err := json.Unmarshal([]byte(read(t, n, resultPath)), &result); err != nil || result.Berth.InstanceID != instance {
		t.Errorf("result of %q, %v, want %q", result.Berth.InstanceID, err, instance)
	}
	var sentinel struct{ InstanceID string }
	if err := json.Unmarshal([]byte(read(t, n, sentinelPath)), &sentinel); err != nil || sentinel.InstanceID != instance {
		t.Errorf("sentinel of %q, %v, want %q", sentinel.InstanceID, err, instance)
	}
}
