package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

const (
	optionsFile  = "/etc/berth/agent.yaml"
	agentOptions = "jitter: 0s\ndrift: {stormGuard: {repairs: 50}}\n"
	oscSource    = "/etc/berth/osc.yaml"
	somaxconn    = "net.core.somaxconn"
)

// optionsOf are options for the agent, with its group.
func (m *agentMachine) optionsOf(text string) []byte {
	return []byte(text + "group: " + m.group + "\n")
}

// replace writes a file as a rename shows it.
func (m *agentMachine) replace(t *testing.T, p, text string) {
	t.Helper()
	if err := m.node.WriteFile(p+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, m.node, "mv", p+".new", p)
}

// stands waits until a condition of the Node has a status and a word in its message.
func (m *agentMachine) stands(t *testing.T, kind corev1.NodeConditionType, status corev1.ConditionStatus, word string) {
	t.Helper()
	_, err := m.lab.WaitNode(within(t, 30*time.Second), m.node.Name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == kind && c.Status == status && strings.Contains(c.Message, word) {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Errorf("%s does not become %s with %q: %v\n%s", kind, status, word, err, run(t, m.node, "journalctl", "-u", agentUnit, "-n", "20", "--no-pager"))
	}
}

func (m *agentMachine) somaxconn(t *testing.T, want string) {
	t.Helper()
	eventually(t, somaxconn+" "+want, 30*time.Second, func() bool {
		return strings.TrimSpace(run(t, m.node, "sysctl", "-n", somaxconn)) == want
	})
}

// aksFile: the document that made the node, in its file, is a second source beside the
// Secret: nothing stirs when the agent takes it, a change is in force, drift is repaired,
// and one that can't be is told by file and field and changes nothing.
func (m *agentMachine) aksFile(t *testing.T) {
	made, err := m.node.ReadFile(configPath)
	if err != nil {
		t.Fatal(err)
	}
	sum, before, value := m.ask(t, hello("beside")), invocations(t, m.node), strings.TrimSpace(run(t, m.node, "sysctl", "-n", somaxconn))
	m.applied(t, sum)
	m.options(t, agentOptions+"sources: {aksNodeConfig: "+configPath+"}\n")
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	planIsEmpty(t, m.lab, m.node)
	text := document(t, nodeConfig(t, m.lab, func(c *aksnodeconfigv1.Configuration) {
		many := int32(20000)
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{SysctlConfig: &aksnodeconfigv1.SysctlConfig{NetCoreSomaxconn: &many}}
	}))
	m.replace(t, configPath, string(text))
	m.somaxconn(t, "20000")
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	file := strings.Fields(run(t, m.node, "grep", "-l", "20000", "-r", "/etc/sysctl.d"))[0]
	good, err := m.node.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run(t, m.node, "sh", "-c", "echo edited >"+file)
	eventually(t, "repair of "+file, 30*time.Second, func() bool {
		now, err := m.node.ReadFile(file)
		return err == nil && string(now) == string(good)
	})
	m.replace(t, configPath, strings.Replace(string(text), "20000", `"many"`, 1))
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionFalse, configPath)
	m.somaxconn(t, "20000")
	m.becomes(t, helloFile, "beside")
	m.applied(t, m.ask(t, hello("both")))
	m.replace(t, configPath, string(made))
	m.somaxconn(t, value)
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	m.options(t, agentOptions)
	planIsEmpty(t, m.lab, m.node)
}

// bothAtOnce: a change of one source is on trial when the other's document comes. That one
// waits, and neither is taken back for the other.
func (m *agentMachine) bothAtOnce(t *testing.T) {
	made, err := m.node.ReadFile(configPath)
	check(t, err)
	m.options(t, agentOptions+"sources: {aksNodeConfig: "+configPath+"}\n")
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	for _, c := range []struct {
		name, flag, value, word string
		status                  corev1.ConditionStatus
	}{
		{"taken back", "--no-such-flag", "1", "in force again", corev1.ConditionFalse},
		{"good", "--max-pods", "54", "", corev1.ConditionTrue},
	} {
		m.replace(t, configPath, string(document(t, nodeConfig(t, m.lab, flagged(c.flag, c.value)))))
		eventually(t, "trial", 30*time.Second, func() bool {
			// The trial of a good one may be over before this sees it.
			over := c.status == corev1.ConditionTrue && strings.Contains(read(t, m.node, flagsPath), c.flag+"="+c.value)
			return over || m.node.Exists("/var/lib/berth/trial.json")
		})
		m.applied(t, m.ask(t, hello("beside what is "+c.name)))
		m.stands(t, "AKSNodeConfigApplied", c.status, c.word)
		m.becomes(t, helloFile, "beside what is "+c.name)
		m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionTrue, "")
		if has := strings.Contains(read(t, m.node, flagsPath), c.flag+"="+c.value); has != (c.status == corev1.ConditionTrue) {
			t.Errorf("%s: the flag is there: %v", c.name, has)
		}
	}
	m.replace(t, configPath, string(made))
	eventually(t, "the document before", 30*time.Second, func() bool { return !strings.Contains(read(t, m.node, flagsPath), "--max-pods=54") })
	m.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	m.options(t, agentOptions)
	planIsEmpty(t, m.lab, m.node)
}

// oscFile: a file in the Secret's place.
func (m *agentMachine) oscFile(t *testing.T) {
	m.replace(t, oscSource, hello("out of a file"))
	m.options(t, fmt.Sprintf("%ssources: {secret: false, operatingSystemConfig: %s}\n", agentOptions, oscSource))
	m.becomes(t, helloFile, "out of a file")
	m.ask(t, hello("not followed"))
	m.replace(t, oscSource, oscDocument(oscFile("/proc/sys/x", "x"), oscUnit("hello.service", helloUnit)))
	m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionFalse, oscSource)
	m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionFalse, "spec.files[0]")
	m.becomes(t, helloFile, "out of a file")
	run(t, m.node, "rm", oscSource)
	m.replace(t, oscSource, hello("again"))
	m.becomes(t, helloFile, "again")
	m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionTrue, "")
	m.options(t, agentOptions)
	m.applied(t, m.ask(t, hello("followed")))
	run(t, m.node, "rm", oscSource)
}
