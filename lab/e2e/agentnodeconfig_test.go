package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

const (
	ownSource       = "/etc/berth/node.json"
	kubeletDefaults = "/etc/default/kubelet"
	ownApplied      = corev1.NodeConditionType("NodeConfigApplied")
)

// TestAgentNodeConfig gives the agent NodeConfigs: on a node that an operator has made with
// one, in the Secret and then in a file.
func TestAgentNodeConfig(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	m := agentOf(t, l, "agent-own")
	m.node = addNode(t, l, lab.NodeConfig{Name: "agent-own", Files: tokenAndCA(t, l)})
	joins(t, l, m.node, m.own(t))
	m.parts(t, []agentPart{
		{"taken over", m.ownTakenOver}, {"change", m.ownChange}, {"drift", m.ownDrift}, {"refused", m.ownRefused}, {"file", m.ownFile},
		{"reset", m.ownReset},
	})
}

// own is the document that made the node, with the agent to stay, changed.
func (m *agentMachine) own(t *testing.T, edits ...func(*v1alpha1.NodeConfig)) []byte {
	t.Helper()
	keep := func(c *v1alpha1.NodeConfig) { c.Agent.Keep = true }
	return ownDocument(t, m.lab, append([]func(*v1alpha1.NodeConfig){keep}, edits...)...)
}

// edited is a document with a label and a kubelet option of its own.
func (m *agentMachine) edited(t *testing.T, label string, pods int32) []byte {
	t.Helper()
	return m.own(t, func(c *v1alpha1.NodeConfig) {
		c.Node.Labels["example.com/a.b"], c.Node.MaxPods = label, pods
	})
}

// shows waits until the Node has what an edited document asks for.
func (m *agentMachine) shows(t *testing.T, label string, pods int64) {
	t.Helper()
	_, err := m.lab.WaitNode(within(t, 30*time.Second), m.node.Name, func(n *corev1.Node) bool {
		return n.Labels["example.com/a.b"] == label && n.Status.Capacity.Pods().Value() == pods
	})
	if err != nil {
		t.Errorf("%v\n%s", err, run(t, m.node, "journalctl", "-u", agentUnit, "-n", "20", "--no-pager"))
	}
}

// ownTakenOver: the agent takes the document of the node, and nothing stirs.
func (m *agentMachine) ownTakenOver(t *testing.T) {
	m.told(t)
	sum, before := m.ask(t, string(m.own(t))), invocations(t, m.node)
	run(t, m.node, berthPath, "agent", "bootstrap")
	m.applied(t, sum)
	m.stands(t, ownApplied, corev1.ConditionTrue, "")
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	planIsEmpty(t, m.lab, m.node)
}

// ownChange: a label is patched and a kubelet option restarts kubelet alone.
func (m *agentMachine) ownChange(t *testing.T) {
	kubelet, containerd := m.invocation(t, "kubelet.service"), m.invocation(t, "containerd.service")
	m.applied(t, m.ask(t, string(m.edited(t, "secret", 57))))
	m.shows(t, "secret", 57)
	if m.invocation(t, "kubelet.service") == kubelet || m.invocation(t, "containerd.service") != containerd {
		t.Error("kubelet was not restarted, or containerd was")
	}
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Error(err)
	}
}

// ownDrift: a file of the document is brought back at once.
func (m *agentMachine) ownDrift(t *testing.T) {
	good, err := m.node.ReadFile(kubeletDefaults)
	check(t, err)
	run(t, m.node, "sh", "-c", "echo edited >"+kubeletDefaults)
	eventually(t, "repair of "+kubeletDefaults, 30*time.Second, func() bool {
		now, err := m.node.ReadFile(kubeletDefaults)
		return err == nil && string(now) == string(good)
	})
	m.event(t, "DriftRepaired", kubeletDefaults)
}

// ownRefused: a wrong value and a document of another kind are told and change nothing.
func (m *agentMachine) ownRefused(t *testing.T) {
	before := invocations(t, m.node)
	m.ask(t, string(m.edited(t, "refused", -1)))
	m.stands(t, ownApplied, corev1.ConditionFalse, "node.maxPods")
	m.ask(t, hello("another kind"))
	m.stands(t, ownApplied, corev1.ConditionFalse, "berth agent reset")
	if _, err := m.node.ReadFile(helloFile); err == nil {
		t.Error("a document of another kind is applied")
	}
	m.shows(t, "secret", 57)
	m.applied(t, m.ask(t, string(m.edited(t, "secret", 57))))
	m.stands(t, ownApplied, corev1.ConditionTrue, "")
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
}

// ownFile: the document comes out of a file, and out of the Secret again.
func (m *agentMachine) ownFile(t *testing.T) {
	m.replace(t, ownSource, string(m.edited(t, "file", 58)))
	m.options(t, agentOptions+"sources: {secret: false, nodeConfig: "+ownSource+"}\n")
	m.shows(t, "file", 58)
	m.stands(t, ownApplied, corev1.ConditionTrue, "")
	m.replace(t, ownSource, string(m.edited(t, "refused", -1)))
	m.stands(t, ownApplied, corev1.ConditionFalse, ownSource)
	m.ask(t, string(m.edited(t, "not followed", 60)))
	m.replace(t, ownSource, string(m.edited(t, "again", 59)))
	m.shows(t, "again", 59)
	m.options(t, agentOptions)
	m.applied(t, m.ask(t, string(m.edited(t, "followed", 59))))
	m.shows(t, "followed", 59)
	run(t, m.node, "rm", ownSource)
}

// ownReset: the agent goes with what the Secret's document asked for.
func (m *agentMachine) ownReset(t *testing.T) {
	if out, err := m.node.Output(within(t, time.Minute), "sh", "-c", berthPath+" agent reset 2>&1"); err != nil {
		t.Logf("%v: %s", err, out)
	}
	if s, _ := m.node.Output(within(t, 10*time.Second), "systemctl", "is-active", "kubelet.service", agentUnit); strings.Contains(s, "\nactive") || strings.HasPrefix(s, "active") {
		t.Errorf("running: %q", s)
	}
	if _, err := m.node.ReadFile(kubeletDefaults); err == nil {
		t.Error("a file of the document is left")
	}
}
