package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rebootKeeps reboots a node from inside.
func rebootKeeps(t *testing.T, l *lab.Lab, n *lab.Node) {
	keeps(t, l, n, n.Reboot)
}

// crashKeeps takes a node's power and gives it back.
func crashKeeps(t *testing.T, l *lab.Lab, n *lab.Node) {
	keeps(t, l, n, func(ctx context.Context) error {
		if err := n.Crash(ctx); err != nil {
			return err
		}
		return n.Start(ctx)
	})
}

// keeps proves that a node is the same node after another boot, and that
// nothing was provisioned again.
func keeps(t *testing.T, l *lab.Lab, n *lab.Node, boot func(context.Context) error) {
	t.Helper()
	before := traceOf(t, l, n)
	if err := boot(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	awaitHeartbeat(t, l, n.Name, up)
	t.Logf("Ready %.1f s after PID 1 started", time.Since(up).Seconds())
	if v, err := n.WaitBooted(within(t, time.Minute)); err != nil || v != "running" {
		t.Errorf("boot: %q %v\n%s", v, err, run(t, n, "systemctl", "--failed", "--no-pager"))
	}
	if diff := cmp.Diff(before, traceOf(t, l, n)); diff != "" {
		t.Errorf("the boot changed (-before +after):\n%s", diff)
	}
	planIsEmpty(t, l, n)
	for _, u := range watched {
		log := "\n" + run(t, n, "journalctl", "-b", "--no-pager", "-o", "cat", "-u", u, "_PID=1")
		if starts := strings.Count(log, "\nStarting "); starts != 1 {
			t.Errorf("%s was started %d times in this boot:\n%s", u, starts, log)
		}
	}
}

// trace is what a boot of a provisioned node must leave as it is.
type trace struct {
	Result, Sentinel, Log string
	UID                   string // of the Node
	Requests              int    // for certificates
	Tree                  map[string]lab.Entry
}

func traceOf(t *testing.T, l *lab.Lab, n *lab.Node) trace {
	t.Helper()
	node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := n.Tree(volatile, "/etc", "/opt", "/var/lib/berth", "/var/lib/kubelet/kubeconfig", "/var/log/azure", "/usr/local")
	if err != nil {
		t.Fatal(err)
	}
	return trace{Result: read(t, n, resultPath), Sentinel: read(t, n, sentinelPath), Log: read(t, n, "/var/log/azure/aks-node-controller.log"),
		UID: string(node.UID), Requests: len(requestsFor(t, l, n)), Tree: tree}
}

// requestsFor are those for a certificate of this node: others register beside it.
func requestsFor(t *testing.T, l *lab.Lab, n *lab.Node) (requests []certificatesv1.CertificateSigningRequest) {
	t.Helper()
	all, err := l.Client().CertificatesV1().CertificateSigningRequests().List(within(t, 10*time.Second), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Items {
		block, _ := pem.Decode(r.Spec.Request)
		if block == nil {
			continue
		}
		if csr, err := x509.ParseCertificateRequest(block.Bytes); err == nil && csr.Subject.CommonName == "system:node:"+n.Name {
			requests = append(requests, r)
		}
	}
	return requests
}

// volatile is what others write at each boot.
func volatile(path string) bool {
	return strings.HasPrefix(path, "/etc/cni/net.d")
}

func read(t *testing.T, n *lab.Node, path string) string {
	t.Helper()
	b, err := n.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(b))
}

// awaitHeartbeat waits until a node says that it is Ready, at since or later:
// the word of its last boot does not count.
func awaitHeartbeat(t *testing.T, l *lab.Lab, name string, since time.Time) {
	t.Helper()
	since = since.Truncate(time.Second)
	_, err := l.WaitNode(within(t, time.Minute), name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since)
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
}
