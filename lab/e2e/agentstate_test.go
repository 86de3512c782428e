package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stateOfOld: what berth remembers is lost, cut, or of an earlier time. The next document is
// in force each time, and what it does not name any more goes as far as berth can know that it
// is its own.
func (m *agentMachine) stateOfOld(t *testing.T) {
	const state = "/var/lib/berth"
	m.applied(t, m.ask(t, hello("of old")))
	run(t, m.node, "sh", "-c", "systemctl stop "+agentUnit+" && cp -a "+state+" /srv/of-old && systemctl start "+agentUnit)
	for name, spoil := range map[string]string{
		"lost":    "rm -r " + state,
		"emptied": "find " + state + " -type f -exec truncate -s 0 {} +",
		"cut":     "find " + state + " -type f -size +1 -size -64k -exec sh -c 'truncate -s $(($(stat -c %s $1) / 2)) $1' - {} \\;",
		"of old":  "rm -r " + state + " && cp -a /srv/of-old " + state,
	} {
		m.applied(t, m.ask(t, strings.Replace(hello("before"), "  units:\n", oscFile("/etc/hello/b.conf", "b")+"  units:\n", 1)))
		run(t, m.node, "sh", "-c", "systemctl stop "+agentUnit+"; "+spoil+"; systemctl start "+agentUnit)
		m.applied(t, m.ask(t, hello(name)))
		m.becomes(t, helloFile, name)
		m.condition(t, corev1.ConditionTrue)
		if s := run(t, m.node, "systemctl", "show", "-P", "ActiveState", "hello.service"); s != "active\n" {
			t.Errorf("%s: hello.service is %s", name, s)
		}
		run(t, m.node, "rm", "-f", "/etc/hello/b.conf")
	}
	m.filesGone(t)
}

// filesGone: units whose files somebody has removed are no error when their document goes.
func (m *agentMachine) filesGone(t *testing.T) {
	run(t, m.node, "sh", "-c", "systemctl stop "+agentUnit+"; rm "+unitDir+"hello.service "+helloFile+"; systemctl daemon-reload; systemctl stop hello.service; true")
	sum := m.ask(t, oscDocument(oscFile("/etc/hello/c.conf", "c"), oscUnit("well.service", helloUnit)))
	run(t, m.node, "systemctl", "start", agentUnit)
	m.applied(t, sum)
	m.condition(t, corev1.ConditionTrue)
}

// giveToken changes what is in the Secret of the token.
func (m *agentMachine) giveToken(t *testing.T, data map[string][]byte) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.token}, Data: data}
	_, err := m.lab.Client().CoreV1().Secrets("kube-system").Update(within(t, 10*time.Second), s, metav1.UpdateOptions{})
	check(t, err)
}

// said: files out of a Secret come about; what has no effect, and a Secret that is gone, are
// told, and what is in force stays.
func (m *agentMachine) said(t *testing.T) {
	secrets := m.lab.Client().CoreV1().Secrets("kube-system")
	file := "  - path: /etc/hello/secret\n    permissions: 416\n    content: {secretRef: {name: " + m.token + ", dataKey: key}}\n"
	document := oscDocument(oscFile(helloFile, "two")+file, oscUnit("hello.service", helloUnit, helloFile)) + "  inPlaceUpdates: {operatingSystemVersion: '2'}\n"
	m.applied(t, m.ask(t, document))
	m.event(t, "OSCNotes", "inPlaceUpdates")
	if got := run(t, m.node, "sh", "-c", "cat /etc/hello/secret; stat -c ' %a' /etc/hello/secret"); got != "of a Secret 640\n" {
		t.Errorf("the file out of a Secret: %q", got)
	}
	check(t, secrets.Delete(within(t, 10*time.Second), m.secret, metav1.DeleteOptions{}))
	m.event(t, "NoDocument", "does not exist")
	if got := read(t, m.node, helloFile); got != "two" {
		t.Errorf("%s is %q", helloFile, got)
	}
	m.patch(t, `{"metadata":{"annotations":{%q:"9999-01-01T00:00:00Z"}}}`, pauseAnnotation)
	m.event(t, "PauseRefused", "7 days")
	m.patch(t, `{"metadata":{"annotations":{%q:null}}}`, pauseAnnotation)
	m.applied(t, m.ask(t, withDropIn(hello("two"))))
}

// refusedConfiguration: a configuration and options that can't be are told by file, end nothing,
// and are forgotten when what was there is back; a start meanwhile goes by what was taken last.
func (m *agentMachine) refusedConfiguration(t *testing.T) {
	if said := run(t, m.node, berthPath, "config", "view"); !containsAll(said, "jitter: 0s", "stormGuard:", "maxUnavailable: 1") {
		t.Errorf("config view: %s", said)
	}
	was := m.invocation(t, agentUnit)
	for _, p := range []string{agentDir + "/config-v0.0.1.yaml", optionsFile} {
		good, err := m.node.ReadFile(p)
		check(t, err)
		m.replace(t, p, "controllers: [\n")
		m.event(t, "ConfigRefused", p)
		run(t, m.node, "sh", "-c", "echo edited >"+helloFile)
		m.becomes(t, helloFile, "two")
		m.replace(t, p, string(good))
	}
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew")
	}
	good, err := m.node.ReadFile(optionsFile)
	check(t, err)
	m.replace(t, optionsFile, "no: such option\n")
	run(t, m.node, "systemctl", "restart", agentUnit)
	m.applied(t, m.ask(t, withDropIn(hello("by old options"))))
	m.replace(t, optionsFile, string(good))
	m.applied(t, m.ask(t, withDropIn(hello("two"))))
}
