package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// agentToken is where join lays the token for the agent's certificate.
const agentToken = agentDir + "/credentials/bootstrap-token"

// TestJoinKeeps: with agent.keep the agent follows the file that joined: it repairs the node
// and takes changes of the file, also without a credential; it goes with a document that
// does not say so any more, and with leave. The Node is called otherwise than the machine.
func TestJoinKeeps(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	applyRBAC(t, l, "--name", "keeps", "--secret", "none")
	approveAgents(t, l)
	n := machineOf(t, l, "join-keeps", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	m := &agentMachine{lab: l, node: n}
	run(t, n, "sh", "-c", "echo host-of-it >/proc/sys/kernel/hostname")
	document := func(label string, keep bool) string {
		return string(ownDocument(t, l, func(c *v1alpha1.NodeConfig) {
			c.Agent.Keep, c.Node.Name, c.Node.Labels["example.com/a.b"] = keep, n.Name, label
		}))
	}
	m.replace(t, configPath, document("edge", true))
	before := look(t, n, "/var/lib/containerd")
	joinsWith := func(what string, changes bool) {
		t.Helper()
		r, said := joinCommand(t, n)
		t.Logf("%s: %d changes\n%s", what, r.Changes, said)
		if r.ExitCode != 0 || r.Milestone != "ready" || r.Changes > 0 != changes || strings.Contains(said, "agent.keep") {
			t.Fatalf("%s: %+v\n%s", what, r, said)
		}
	}
	joinsWith("join", true)
	m.stands(t, ownApplied, corev1.ConditionTrue, "")
	eventually(t, "the token taken away", 30*time.Second, func() bool { return !n.Exists(agentToken) })
	token := run(t, n, "cat", tokenPath)
	run(t, n, "rm", tokenPath)
	joinsWith("a second join", false)
	m.repairs(t)
	m.event(t, "DriftRepaired", kubeletDefaults)

	m.replace(t, configPath, document("changed", true))
	m.labelled(t, "changed")
	joinsWith("a join of what the agent took", false)

	m.replace(t, configPath, document("left", false))
	joinsWith("a document without the agent", true)
	m.labelled(t, "left")
	if s, _ := n.Output(within(t, 10*time.Second), "systemctl", "is-active", agentUnit); strings.TrimSpace(s) != "inactive" || n.Exists(agentDir) || n.Exists(optionsFile) {
		t.Errorf("the agent is %s, or something of it is left", s)
	}
	m.replace(t, configPath, document("edge", true))
	joinsWith("the agent again, without a token", true)
	m.repairs(t)

	if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 || hasNode(t, l, n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	if err := n.WriteFile(tokenPath, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd")); diff != "" {
		t.Error(diff)
	}
}

// repairs edits a file of the document and waits until it is as it was.
func (m *agentMachine) repairs(t *testing.T) {
	t.Helper()
	good, err := m.node.ReadFile(kubeletDefaults)
	check(t, err)
	run(t, m.node, "sh", "-c", "echo edited >"+kubeletDefaults)
	eventually(t, "repair of "+kubeletDefaults, 30*time.Second, func() bool {
		now, err := m.node.ReadFile(kubeletDefaults)
		return err == nil && string(now) == string(good)
	})
}

// labelled waits until the Node has the label of a document.
func (m *agentMachine) labelled(t *testing.T, value string) {
	t.Helper()
	if _, err := m.lab.WaitNode(within(t, 30*time.Second), m.node.Name, func(n *corev1.Node) bool { return n.Labels["example.com/a.b"] == value }); err != nil {
		t.Error(err)
	}
}
