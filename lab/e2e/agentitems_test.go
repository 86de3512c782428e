package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAgentItems follows what the agent keeps of its Node and tells on the machine.
func TestAgentItems(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-items", nil)
	m.parts(t, []agentPart{
		{"first document", m.first}, {"metrics", m.metrics}, {"internal address", m.internalAddress}, {"host name", m.hostName},
	})
}

// metrics: health and metrics are served to the machine itself, and to nobody else.
func (m *agentMachine) metrics(t *testing.T) {
	for _, p := range []string{"healthz", "readyz"} {
		if got := run(t, m.node, "curl", "-sSf", "http://127.0.0.1:2751/"+p); got != "ok\n" {
			t.Errorf("%s: %q", p, got)
		}
	}
	got := run(t, m.node, "curl", "-sSf", "http://127.0.0.1:2752/metrics")
	if !containsAll(got, "# TYPE berth_agent_documents_applied_total counter\n", "\nberth_agent_documents_applied_total 1\n", "\nberth_agent_documents_failed_total 0\n") {
		t.Errorf("metrics:\n%s", got)
	}
	for _, port := range []string{"2751", "2752"} {
		if c, err := m.lab.Dial(within(t, 5*time.Second), "tcp", m.node.IP.String()+":"+port); err == nil {
			_ = c.Close()
			t.Errorf("port %s is open to the network", port)
		}
	}
}

// internalAddress: a Node that has lost its address gets it back while kubelet is down.
func (m *agentMachine) internalAddress(t *testing.T) {
	run(t, m.node, "systemctl", "stop", "kubelet.service")
	nodes := m.lab.Client().CoreV1().Nodes()
	_, err := nodes.Patch(within(t, 10*time.Second), m.node.Name, types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/status/addresses","value":[]}]`), metav1.PatchOptions{}, "status")
	check(t, err)
	m.event(t, "kubelet", "the Node had lost its internal address "+m.node.IP.String())
	_, err = m.lab.WaitNode(within(t, 30*time.Second), m.node.Name, func(n *corev1.Node) bool {
		return len(n.Status.Addresses) == 1 && n.Status.Addresses[0] == corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: m.node.IP.String()}
	})
	if err != nil {
		t.Errorf("the Node has not got its address back: %v", err)
	}
	run(t, m.node, "systemctl", "start", "kubelet.service")
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
}

// hostName: upper case is the same name, with which the agent finds its Node; another
// name starts the agent anew, and so does the way back, with which it goes on.
func (m *agentMachine) hostName(t *testing.T) {
	named := func(name string) { run(t, m.node, "sh", "-c", "echo "+name+" >/proc/sys/kernel/hostname") }
	named(strings.ToUpper(m.node.Name))
	run(t, m.node, "systemctl", "restart", agentUnit)
	m.applied(t, m.ask(t, hello("in upper case")))
	was := m.invocation(t, agentUnit)
	for _, name := range []string{"other", m.node.Name} {
		named(name)
		eventually(t, "start of the agent as "+name, hostNameLook+15*time.Second, func() bool {
			return m.invocation(t, agentUnit) != was && strings.TrimSpace(run(t, m.node, "systemctl", "show", "-p", "ActiveState", "--value", agentUnit)) == "active"
		})
		if log := run(t, m.node, "journalctl", "--no-pager", "-o", "cat", "_SYSTEMD_INVOCATION_ID="+was); !strings.Contains(log, "the machine's name has changed from ") {
			t.Errorf("as %s it does not say why:\n%s", name, log)
		}
		was = m.invocation(t, agentUnit)
	}
	m.applied(t, m.ask(t, hello("under its name")))
}

// hostNameLook is between two looks of the agent at the machine's name.
const hostNameLook = 30 * time.Second
