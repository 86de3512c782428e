package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	agentTokenFile   = "/var/lib/node-token/token"
	agentSecretLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"
	agentRestarts    = "worker.gardener.cloud/restart-systemd-services"
)

// heartbeat: the agent's Lease is the Node's, and is renewed.
func (m *agentMachine) heartbeat(t *testing.T) {
	leases := m.lab.Client().CoordinationV1().Leases("kube-system")
	node := nodeOf(t, m.lab, m.node)
	l, err := leases.Get(within(t, 10*time.Second), "gardener-node-agent-"+m.node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.OwnerReferences) != 1 || l.OwnerReferences[0].UID != node.UID || *l.Spec.LeaseDurationSeconds != 160 || time.Since(l.Spec.RenewTime.Time) > 80*time.Second {
		t.Errorf("lease %+v of %+v", l.Spec, l.OwnerReferences)
	}
}

// unitsReady: the condition says that the document's units run.
func (m *agentMachine) unitsReady(t *testing.T) {
	_, err := m.lab.WaitNode(within(t, 30*time.Second), m.node.Name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == "SystemdUnitsReady" {
				return c.Status == corev1.ConditionTrue && c.Reason == "AllUnitsHealthy"
			}
		}
		return false
	})
	if err != nil {
		t.Error(err)
	}
}

// tokens: what the Secret has is in the file, soon after it changes and soon after
// the file is gone; a Secret without a token changes nothing.
func (m *agentMachine) tokens(t *testing.T) {
	secrets := m.lab.Client().CoreV1().Secrets("kube-system")
	put := func(data map[string][]byte) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.token}, Data: data}
		_, err := secrets.Update(within(t, 10*time.Second), s, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = secrets.Create(within(t, 10*time.Second), s, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(want string) {
		t.Helper()
		eventually(t, "token "+want, 5*time.Second, func() bool {
			text, err := m.node.ReadFile(agentTokenFile)
			return err == nil && string(text) == want
		})
	}
	put(map[string][]byte{"token": []byte("one")})
	has("one")
	put(map[string][]byte{"token": []byte("two")})
	has("two")
	if got := strings.TrimSpace(run(t, m.node, "stat", "-c", "%a %U", agentTokenFile)); got != "640 root" {
		t.Errorf("the file is %s", got)
	}
	run(t, m.node, "rm", agentTokenFile)
	has("two")
	put(map[string][]byte{"other": []byte("x")})
	m.event(t, "TokenSync", `has no data of key "token"`)
	has("two")
}

// patch merges a patch into the Node.
func (m *agentMachine) patch(t *testing.T, format string, args ...any) {
	t.Helper()
	_, err := m.lab.Client().CoreV1().Nodes().Patch(within(t, 10*time.Second), m.node.Name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// restarts: units that the annotation names are restarted, the agent last; a unit
// that there is none of is told.
func (m *agentMachine) restarts(t *testing.T) {
	id := func(unit string) string { return m.invocation(t, unit) }
	hello, agent, kubelet := id("hello.service"), id(agentUnit), id("kubelet.service")
	m.patch(t, `{"metadata":{"annotations":{%q:"gardener-node-agent, hello ,nothing"}}}`, agentRestarts)
	m.event(t, "SystemDUnitRestart", "nothing.service failed: there is no such unit")
	if _, err := m.lab.WaitNode(within(t, 20*time.Second), m.node.Name, func(n *corev1.Node) bool { return n.Annotations[agentRestarts] == "" }); err != nil {
		t.Fatal(err)
	}
	if id("hello.service") == hello {
		t.Error("hello.service was not restarted")
	}
	eventually(t, "restart of the agent", 20*time.Second, func() bool {
		return id(agentUnit) != agent && strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "ActiveState", agentUnit)) == "active"
	})
	if id("kubelet.service") != kubelet {
		t.Error("kubelet was restarted, too")
	}
}

// secretName: a label that is empty is refused and told; one that names another
// Secret ends up in the configuration, and the agent goes by it.
func (m *agentMachine) secretName(t *testing.T) {
	named := func(name string) func() bool {
		return func() bool {
			text, err := m.node.ReadFile(agentDir + "/config-v0.0.1.yaml")
			return err == nil && strings.Contains(string(text), "secretName: "+name+"\n")
		}
	}
	m.patch(t, `{"metadata":{"labels":{%q:""}}}`, agentSecretLabel)
	m.event(t, "SecretNameRefused", "is empty; the agent stays with "+m.secret)
	m.patch(t, `{"metadata":{"labels":{%q:null}}}`, agentSecretLabel)
	m.event(t, "SecretNameRefused", "is missing; the agent stays with "+m.secret)
	m.patch(t, `{"metadata":{"labels":{%q:"another"}}}`, agentSecretLabel)
	eventually(t, "another name", 10*time.Second, named("another"))
	m.patch(t, `{"metadata":{"labels":{%q:%q}}}`, agentSecretLabel, m.secret)
	eventually(t, "the first name", 30*time.Second, named(m.secret))
	if got := strings.TrimSpace(run(t, m.node, "stat", "-c", "%a", agentDir+"/config-v0.0.1.yaml")); got != "600" {
		t.Errorf("mode %s", got)
	}
}

// kubeletHealth: a kubelet that answers systemd's watchdog and nobody else is restarted.
func (m *agentMachine) kubeletHealth(t *testing.T) {
	rule := []string{"INPUT", "-i", "lo", "-p", "tcp", "--dport", "10248", "-j", "REJECT", "--reject-with", "tcp-reset"}
	before := m.invocation(t, "kubelet.service")
	run(t, m.node, append([]string{"iptables", "-I"}, rule...)...)
	defer run(t, m.node, append([]string{"iptables", "-D"}, rule...)...)
	eventually(t, "restart of kubelet", 3*time.Minute, func() bool { return m.invocation(t, "kubelet.service") != before })
	m.event(t, "kubelet", "restarted kubelet.service, which was not well for")
}

// everyPeriod: what nobody tells of, here an edit by another name of the file, is found when
// everything is looked at.
func (m *agentMachine) everyPeriod(t *testing.T) {
	was := m.invocation(t, agentUnit)
	run(t, m.node, "sh", "-c", "cd "+agentDir+" && sed -i 's/secretName: "+m.secret+"/&, syncPeriod: 15s/' config-v0.0.1.yaml && grep -q syncPeriod config-v0.0.1.yaml")
	eventually(t, "start of the agent with its configuration", 30*time.Second, func() bool {
		return m.invocation(t, agentUnit) != was && strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "ActiveState", agentUnit)) == "active"
	})
	m.applied(t, m.ask(t, hello("each period")))
	for range 5 {
		run(t, m.node, "sh", "-c", "ln -f "+helloFile+" /srv/hello && echo edited >/srv/hello; sleep 2")
		if read(t, m.node, helloFile) == "edited" {
			m.becomes(t, helloFile, "each period")
			m.event(t, "DriftRepaired", helloFile)
			return
		}
	}
	t.Error("each edit is repaired at once: something tells of it")
}

// health: a containerd that does not answer is restarted after a minute. kubelet
// has systemd's watchdog, which is faster.
func (m *agentMachine) health(t *testing.T) {
	before := m.invocation(t, "containerd.service")
	run(t, m.node, "systemctl", "kill", "-s", "STOP", "containerd.service")
	eventually(t, "restart of containerd", 3*time.Minute, func() bool { return m.invocation(t, "containerd.service") != before })
	m.event(t, "containerd", "restarted containerd.service, which was not well for")
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Error(err)
	}
}
