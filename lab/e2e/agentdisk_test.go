package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const fullDir = "/etc/full"

// fullDisk: a document for whose files, or for berth's own state, there is no space changes
// nothing and says so. The agent keeps what is in force, and goes on when there is space.
func (m *agentMachine) fullDisk(t *testing.T) {
	m.applied(t, m.ask(t, hello("with space")))
	was := m.invocation(t, agentUnit)
	run(t, m.node, "sh", "-c", "mkdir "+fullDir+" && mount -t tmpfs -o size=4k,mode=0755 tmpfs "+fullDir+"; cat /dev/zero >"+fullDir+"/fill; true")
	sum := m.ask(t, strings.Replace(hello("without space"), "  units:\n", oscFile(fullDir+"/a", "a")+"  units:\n", 1))
	m.hasNoSpace(t, fullDir)
	run(t, m.node, "sh", "-c", "echo edited >"+helloFile)
	m.becomes(t, helloFile, "with space")
	run(t, m.node, "rm", fullDir+"/fill")
	m.applied(t, sum)
	m.becomes(t, fullDir+"/a", "a")
	m.applied(t, m.ask(t, hello("with space")))
	run(t, m.node, "sh", "-c", "umount "+fullDir+" && rmdir "+fullDir)
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew")
	}
	m.fullState(t)
}

// fullState is fullDisk of berth's own state.
func (m *agentMachine) fullState(t *testing.T) {
	const state = "/var/lib/berth"
	run(t, m.node, "sh", "-c", "systemctl stop "+agentUnit+"; cp -a "+state+" /srv/state && mount -t tmpfs -o size=64m,mode=0700 tmpfs "+state+" && cp -a /srv/state/. "+state+"; cat /dev/zero >"+state+"/fill; systemctl start "+agentUnit)
	was := m.invocation(t, agentUnit)
	sum := m.ask(t, hello("without state"))
	m.hasNoSpace(t, state)
	if got := read(t, m.node, helloFile); got != "with space" {
		t.Errorf("%s is %q", helloFile, got)
	}
	run(t, m.node, "rm", state+"/fill")
	m.applied(t, sum)
	m.becomes(t, helloFile, "without state")
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew")
	}
}

// hasNoSpace waits until the Node says that there is no space in a directory.
func (m *agentMachine) hasNoSpace(t *testing.T, dir string) {
	t.Helper()
	start := time.Now()
	m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionFalse, "no space left")
	if said := m.condition(t, corev1.ConditionFalse); !containsAll(said, dir, "df -h") {
		t.Errorf("it says %q", said)
	}
	t.Logf("told after %.3f s", time.Since(start).Seconds())
}
