package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/lab"
)

const (
	agentDir     = "/var/lib/gardener-node-agent"
	agentUnit    = "gardener-node-agent.service"
	agentApplied = "checksum/cloud-config-data"
)

// The tests of the agent run beside each other, each with a machine, a Secret and a
// group of its own: they wait most of the time.

// TestAgent follows one node that provision made: the agent takes it over without
// a stir, and keeps it as its Secret says through changes and drift.
func TestAgent(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent", nil)
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	m.told(t)
	check(t, m.node.WriteFile(unitDir+downloaderUnit, []byte(helloUnit), 0o644))
	run(t, m.node, "systemctl", "enable", "--now", downloaderUnit)
	m.before = m.everything(t)
	m.parts(t, []agentPart{
		{"first document", m.first}, {"agent of old", m.agentOfOld}, {"hardening", m.hardening}, {"heartbeat", m.heartbeat}, {"units ready", m.unitsReady}, {"tokens", m.tokens},
		{"restarts", m.restarts}, {"secret name", m.secretName}, {"change", m.change}, {"own configuration", m.ownConfiguration}, {"refused configuration", m.refusedConfiguration},
		{"said", m.said}, {"drift", m.drift}, {"pause", m.pause}, {"by hand", m.byHand}, {"refused", m.refused}, {"broken", m.broken}, {"withdrawn", m.withdrawn}, {"reset", m.reset},
	})
}

// TestAgentHealth has the agent restart what does not answer.
func TestAgentHealth(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-health", nil)
	m.parts(t, []agentPart{{"first document", m.first}, {"health", m.health}, {"kubelet's health", m.kubeletHealth}, {"every period", m.everyPeriod}})
}

// TestAgentKilled kills the agent, and then gives it a document that is as large as a
// Secret may be.
func TestAgentKilled(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-killed", nil)
	m.parts(t, []agentPart{{"first document", m.first}, {"killed", m.killed}, {"large", m.large}, {"state", m.stateOfOld}})
}

// TestAgentWithoutServer takes the API server away, what it knew, and the space on the disk.
func TestAgentWithoutServer(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-alone", nil)
	m.parts(t, []agentPart{{"first document", m.first}, {"API server away", m.away}, {"watch expired", m.watchExpired}, {"full disk", m.fullDisk}})
}

// TestAgentCertificates has the agent's certificate end, go, and be another cluster's.
func TestAgentCertificates(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-certificates", nil)
	m.parts(t, []agentPart{
		{"first document", m.first}, {"renewed", m.certificateRenewed}, {"lost", m.certificateLost}, {"no approver", m.noApprover}, {"unknown", m.certificateUnknown},
	})
}

// TestAgentFiles gives the agent documents in files.
func TestAgentFiles(t *testing.T) {
	parallelLong(t)
	m := newAgent(t, "agent-files", nil)
	m.parts(t, []agentPart{{"first document", m.first}, {"AKS file", m.aksFile}, {"both at once", m.bothAtOnce}, {"OSC file", m.oscFile}})
}

// first: the agent gets a certificate for the token, takes the document, and says so;
// nothing that provision has put there stirs.
func (m *agentMachine) first(t *testing.T) {
	m.firstOf(t, hello("one"))
}

func (m *agentMachine) firstOf(t *testing.T, document string) {
	t.Helper()
	m.told(t)
	sum := m.ask(t, document)
	before := invocations(t, m.node)
	run(t, m.node, berthPath, "agent", "bootstrap")
	node := m.applied(t, sum)
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	for label, want := range map[string]string{"worker.gardener.cloud/kubernetes-version": m.lab.KubernetesVersion(), "topology.kubernetes.io/zone": "zone-1"} {
		if node.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, node.Labels[label], want)
		}
	}
	if s := strings.TrimSpace(run(t, m.node, "systemctl", "is-active", "hello.service")); s != "active" {
		t.Errorf("hello.service is %s", s)
	}
	if r := m.lease(t); r.Spec.LeaseDurationSeconds == nil || *r.Spec.LeaseDurationSeconds != 160 {
		t.Errorf("lease %+v", r.Spec)
	}
	if _, err := m.node.ReadFile(agentDir + "/credentials/bootstrap-token"); err == nil {
		t.Error("the bootstrap token is left")
	}
}

// downloaderUnit is of the agent before the published one.
const downloaderUnit = "cloud-config-downloader.service"

// agentOfOld: two agents on a machine would fight; the older one is stopped for good.
func (m *agentMachine) agentOfOld(t *testing.T) {
	got := run(t, m.node, "sh", "-c", "systemctl is-active "+downloaderUnit+"; systemctl is-enabled "+downloaderUnit+"; true")
	if got != "inactive\ndisabled\n" {
		t.Errorf("%s is %q", downloaderUnit, got)
	}
}

// hardening: system calls of the agent are filtered, and it mounts where all others do.
func (m *agentMachine) hardening(t *testing.T) {
	status := strings.Fields(run(t, m.node, "sh", "-c", "p=$(systemctl show -P MainPID "+agentUnit+"); readlink /proc/$p/ns/mnt /proc/1/ns/mnt; awk '$1 == \"Seccomp:\" {print $2}' /proc/$p/status"))
	if len(status) != 3 || status[0] != status[1] || status[2] != "2" {
		t.Errorf("mount namespaces of the agent and of systemd, and the agent's filter: %q", status)
	}
}

// change: a file that a unit names restarts that unit and no other.
func (m *agentMachine) change(t *testing.T) {
	before, was := invocations(t, m.node), m.invocation(t, "hello.service")
	m.applied(t, m.ask(t, hello("two")))
	if got, err := m.node.ReadFile(helloFile); err != nil || string(got) != "two" {
		t.Errorf("%q %v", got, err)
	}
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 || m.invocation(t, "hello.service") == was {
		t.Errorf("restarted %q, or hello.service was not", got)
	}
	m.event(t, "SystemDUnitRestart", "restarted hello.service, as the document asks for")
}

// ownConfiguration: a document that brings the agent another configuration is applied
// to its end, and then the agent starts anew with it. A token that this one asks for is there
// when the document's units start.
func (m *agentMachine) ownConfiguration(t *testing.T) {
	path := agentDir + "/config-v0.0.1.yaml"
	was := m.invocation(t, agentUnit)
	m.giveToken(t, map[string][]byte{"token": []byte("two"), "key": []byte("of a Secret")})
	const second = "/var/lib/second-token/token" // hello.service, which runs, does not start again without it
	needs := strings.Replace(helloUnit, "ExecStart=", "ExecStartPre=/usr/bin/test -s "+second+"\nExecStart=", 1)
	m.applied(t, m.ask(t, oscDocument(oscFile(helloFile, "own")+oscFile(path, "logFormat: text\n"+m.config(agentTokenFile, second)), oscUnit("hello.service", needs, helloFile))))
	if err := m.node.Run(within(t, 30*time.Second), "sh", "-c", "while [ $(systemctl show -p InvocationID --value "+agentUnit+") = "+was+" ]; do sleep 0.05; done"); err != nil {
		t.Errorf("the agent did not start anew: %v", err)
	}
	was = m.invocation(t, agentUnit)
	m.applied(t, m.ask(t, withDropIn(hello("two"))))
	eventually(t, "start of the agent with the configuration before", 30*time.Second, func() bool {
		return m.invocation(t, agentUnit) != was && strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "ActiveState", agentUnit)) == "active"
	})
}

// helloDropIn is a drop-in of the document's unit.
const helloDropIn = unitDir + "hello.service.d/10-nice.conf"

func withDropIn(document string) string {
	return strings.Replace(document, "    filePaths:", `    dropIns: [{name: 10-nice.conf, content: "[Service]\nNice=3\n"}]`+"\n    filePaths:", 1)
}

// maskHello masks the unit at once: what is removed first is back before its mask comes.
const maskHello = "ln -s /dev/null /etc/masked; mv -T /etc/masked /etc/systemd/system/hello.service; systemctl daemon-reload; systemctl stop hello.service"

// killHello kills what the unit runs and waits until systemd knows: for as long as it does
// not, the unit is active as before.
const killHello = "was=$(systemctl show -P InvocationID hello.service); systemctl kill -s KILL hello.service; while [ \"$(systemctl show -P ActiveState hello.service) $(systemctl show -P InvocationID hello.service)\" = \"active $was\" ]; do sleep 0.02; done"

// drift: what somebody changes is put right as soon as it happens.
func (m *agentMachine) drift(t *testing.T) {
	for _, spoil := range []string{"echo edited >" + helloFile, "rm " + helloFile, "mv " + helloFile + " /tmp/elsewhere"} {
		run(t, m.node, "sh", "-c", spoil)
		m.becomes(t, helloFile, "two")
	}
	m.event(t, "DriftRepaired", helloFile)
	m.definitionDrift(t)
	for _, spoil := range []string{"systemctl stop hello.service", killHello, maskHello, "systemctl disable --now hello.service"} {
		// A stop is cancelled, and systemctl says so, where the agent starts the unit before it is done.
		_, err := m.node.Exec(within(t, 30*time.Second), "sh", "-c", spoil)
		check(t, err)
		if err := m.node.Run(within(t, 30*time.Second), "sh", "-c", "until systemctl is-active -q hello.service && systemctl is-enabled -q hello.service; do sleep 0.05; done"); err != nil {
			t.Errorf("after %s: %v\n%s", spoil, err, run(t, m.node, "journalctl", "-u", agentUnit, "-n", "20", "--no-pager"))
		}
	}
	m.ownUnit(t)
}

// definitionDrift: modes, drop-ins and definitions are put right, and systemd goes by them.
func (m *agentMachine) definitionDrift(t *testing.T) {
	const definition = unitDir + "hello.service"
	for _, c := range []struct{ spoil, good string }{
		{"chmod 600 " + helloFile, `[ "$(stat -c %a ` + helloFile + `)" = 644 ]`},
		{"rm " + helloDropIn + "; systemctl daemon-reload", "grep -q Nice=3 " + helloDropIn},
		{"printf '[Service]\\nExecStart=/bin/sleep 77\\n' >/etc/other; mv -T /etc/other " + definition + "; systemctl daemon-reload", "grep -q infinity " + definition},
	} {
		run(t, m.node, "sh", "-c", c.spoil)
		start := time.Now()
		asLoaded := `[ "$(systemctl show -P NeedDaemonReload hello.service) $(systemctl show -P Nice hello.service)" = 'no 3' ] && systemctl show -P ExecStart hello.service | grep -q infinity`
		if err := m.node.Run(within(t, 30*time.Second), "sh", "-c", "until "+c.good+" && "+asLoaded+"; do sleep 0.02; done"); err != nil {
			t.Errorf("after %s: %v\n%s", c.spoil, err, run(t, m.node, "journalctl", "-u", agentUnit, "-n", "20", "--no-pager"))
		}
		t.Logf("after %s: %.3f s", c.spoil, time.Since(start).Seconds())
	}
}

// ownUnit: the agent's own unit is put right, too, and nothing is started for it.
func (m *agentMachine) ownUnit(t *testing.T) {
	own, was := unitDir+agentUnit, m.invocation(t, agentUnit)
	good, err := m.node.ReadFile(own)
	check(t, err)
	run(t, m.node, "sh", "-c", "echo '# edited' >>"+own)
	eventually(t, "repair of "+own, 30*time.Second, func() bool {
		now, err := m.node.ReadFile(own)
		return err == nil && string(now) == string(good)
	})
	m.event(t, "DriftRepaired", own)
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew for its unit")
	}
}

// pause: a change by hand stays while repairs rest.
func (m *agentMachine) pause(t *testing.T) {
	run(t, m.node, berthPath, "agent", "pause", "--for", "1h")
	run(t, m.node, "sh", "-c", "echo paused >"+helloFile)
	m.event(t, "DriftReported", helloFile)
	if got, err := m.node.ReadFile(helloFile); err != nil || string(got) != "paused\n" {
		t.Errorf("%q %v", got, err)
	}
	run(t, m.node, berthPath, "agent", "pause", "--for", "0s")
	m.becomes(t, helloFile, "two")
}

// byHand: another document of the same contract is undone, and not without a word; one
// that a person tries is left alone until the time is over.
func (m *agentMachine) byHand(t *testing.T) {
	const at = "/tmp/byhand.yaml"
	before := m.invocation(t, "hello.service")
	check(t, m.node.WriteFile(at, []byte(hello("by hand")), 0o600))
	run(t, m.node, berthPath, "apply", "-f", at)
	m.event(t, "AppliedByHand", "the agent goes back to its own")
	m.becomes(t, helloFile, "two")
	run(t, m.node, berthPath, "apply", "-f", at, "--confirm-within", "20s")
	m.event(t, "AppliedByHand", "waits to be confirmed, within ")
	if got, err := m.node.ReadFile(helloFile); err != nil || string(got) != "by hand" {
		t.Errorf("%q %v", got, err)
	}
	eventually(t, "the end of the time", 40*time.Second, func() bool {
		got, err := m.node.ReadFile(helloFile)
		return err == nil && string(got) == "two" && !m.node.Exists("/var/lib/berth/trial.json")
	})
	if m.invocation(t, "hello.service") == before {
		t.Error("hello.service was not restarted for its file")
	}
}

// refused: a document that can't be is told of by path and code, and changes nothing: the
// agent goes on to keep the one before.
func (m *agentMachine) refused(t *testing.T) {
	run(t, m.node, "ln", "-s", "/proc/sys", "/etc/linked")
	first, units := oscFile(helloFile, "not this"), oscUnit("hello.service", helloUnit, helloFile)
	ring := func(name, other string) string {
		return oscUnit(name, "[Unit]\nRequires="+other+"\nAfter="+other+"\n"+helloUnit[strings.Index(helloUnit, "[Service]"):])
	}
	for _, c := range []struct{ name, document, says string }{
		{"below proc", oscDocument(first+oscFile("/proc/sys/x", "x"), units), "spec.files[1].path"},
		{"dots", oscDocument(first+oscFile("/etc/hello/../x", "x"), units), "spec.files[1].path"},
		{"twice", oscDocument(first+oscFile("/etc/x", "x")+oscFile("/etc/x", "y"), units), "spec.files[2].path"},
		{"linked parent", oscDocument(first+oscFile("/etc/linked/x", "x"), units), "/etc/linked"},
		{"onto a directory", oscDocument(first+oscFile("/etc/systemd", "x"), units), "/etc/systemd"},
		{"encoding", strings.Replace(oscDocument(first+oscFile("/etc/x", "x"), units), `{inline: {data: "x"}`, `{inline: {encoding: rot13, data: "x"}`, 1), "spec.files[1].content.inline.encoding"},
		{"circle", oscDocument(first, units+ring("ring-a.service", "ring-b.service")+ring("ring-b.service", "ring-a.service")), "ring-a.service"},
		{"rubbish", strings.Repeat("\x00rubbish", 100_000), "yaml: control characters"},
	} {
		m.ask(t, c.document)
		m.stands(t, "OperatingSystemConfigApplied", corev1.ConditionFalse, c.says)
		if said := m.condition(t, corev1.ConditionFalse); !strings.Contains(said, "ERR_") {
			t.Errorf("%s: it says %q", c.name, said)
		}
		m.event(t, "ApplyFailed", c.says)
		run(t, m.node, "sh", "-c", "echo edited >"+helloFile)
		m.becomes(t, helloFile, "two")
	}
	run(t, m.node, "rm", "/etc/linked")
	m.applied(t, m.ask(t, hello("three")))
	m.condition(t, corev1.ConditionTrue)
}

// broken: a change with which a unit does not stay up is taken back, told of, and
// not tried again until another one has been asked for.
func (m *agentMachine) broken(t *testing.T) {
	bad := strings.Replace(helloUnit, "/bin/sleep infinity", "/bin/false", 1)
	m.ask(t, oscDocument(oscFile(helloFile, "bad"), oscUnit("hello.service", bad, helloFile)))
	if said := m.condition(t, corev1.ConditionFalse); !strings.Contains(said, "the last good configuration is in force again") {
		t.Errorf("it says %q", said)
	}
	m.becomes(t, helloFile, "three")
	was := m.invocation(t, "hello.service")
	run(t, m.node, "systemctl", "restart", agentUnit)
	time.Sleep(10 * time.Second)
	if m.invocation(t, "hello.service") != was {
		t.Error("it was tried again")
	}
	m.applied(t, m.ask(t, hello("three")))
	m.condition(t, corev1.ConditionTrue)
	m.ask(t, oscDocument(oscFile(helloFile, "bad"), oscUnit("hello.service", bad, helloFile)))
	m.condition(t, corev1.ConditionFalse)
	was = m.invocation(t, "hello.service")
	m.applied(t, m.ask(t, hello("four")))
	if m.invocation(t, "hello.service") == was {
		t.Error("hello.service was not restarted for its new file")
	}
	m.condition(t, corev1.ConditionTrue)
}

// killed: the agent may die at any time; what it is asked for comes about, once.
func (m *agentMachine) killed(t *testing.T) {
	for i := range 10 {
		text := fmt.Sprintf("killed %d", i)
		sum := m.ask(t, hello(text))
		time.Sleep(rand.N(60 * time.Millisecond))
		run(t, m.node, "systemctl", "kill", "-s", "KILL", agentUnit)
		run(t, m.node, "systemctl", "reset-failed", agentUnit)
		run(t, m.node, "systemctl", "start", agentUnit)
		m.applied(t, sum)
		m.becomes(t, helloFile, text)
	}
	if out := run(t, m.node, "systemctl", "show", "-p", "NRestarts", "--value", "hello.service"); strings.TrimSpace(out) != "0" {
		t.Errorf("hello.service was restarted by systemd %s times", out)
	}
}

// away: without an API server the machine is kept as it was asked for last, also by an
// agent that has just started. One that it had reached is back after a minute: a document
// that came meanwhile is in force, and the Lease goes on.
func (m *agentMachine) away(t *testing.T) {
	m.applied(t, m.ask(t, hello("here")))
	withoutServer(t, m.node, "DROP", func() {
		run(t, m.node, "sh", "-c", "echo away >"+helloFile)
		m.becomes(t, helloFile, "here")
		run(t, m.node, "systemctl", "stop", agentUnit)
		run(t, m.node, "sh", "-c", "echo stopped >"+helloFile)
		run(t, m.node, "systemctl", "start", agentUnit)
		m.becomes(t, helloFile, "here")
	})
	m.applied(t, m.ask(t, hello("back")))
	was, sum := m.invocation(t, agentUnit), ""
	withoutServer(t, m.node, "DROP", func() {
		run(t, m.node, "iptables", "-I", "INPUT", "-p", "tcp", "--sport", "443", "-j", "DROP") // nor does it hear one
		defer run(t, m.node, "iptables", "-D", "INPUT", "-p", "tcp", "--sport", "443", "-j", "DROP")
		sum = m.ask(t, hello("meanwhile"))
		time.Sleep(30 * time.Second)
		run(t, m.node, "sh", "-c", "echo away >"+helloFile)
		m.becomes(t, helloFile, "back")
		time.Sleep(30 * time.Second)
	})
	m.applied(t, sum)
	back := time.Now()
	eventually(t, "renewal of the Lease", time.Minute, func() bool { return m.lease(t).Spec.RenewTime.After(back) })
	if m.invocation(t, agentUnit) != was {
		t.Error("the agent was started anew")
	}
}

// certificateLost: a token that has expired is told with what to do, and ends nothing; a new
// one gets the agent a new certificate.
func (m *agentMachine) certificateLost(t *testing.T) {
	const expired = "agelap.0123456789abcdef"
	check(t, m.lab.AddToken(within(t, 10*time.Second), expired, time.Now().Add(-time.Hour)))
	run(t, m.node, "systemctl", "stop", agentUnit)
	run(t, m.node, "rm", agentDir+"/credentials/kubeconfig")
	check(t, m.node.WriteFile(agentDir+"/credentials/bootstrap-token", []byte(expired), 0o600))
	kubelet := m.invocation(t, "kubelet.service")
	run(t, m.node, "systemctl", "start", agentUnit)
	was := m.invocation(t, agentUnit)
	eventually(t, "the word of it", 40*time.Second, func() bool {
		says := run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit)
		return strings.Contains(says, "ERR_") && strings.Contains(says, "nauthorized") && strings.Contains(says, "token")
	})
	t.Log(run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit))
	check(t, m.node.WriteFile(agentDir+"/credentials/bootstrap-token", []byte(lab.Token), 0o600))
	m.applied(t, m.ask(t, hello("again")))
	if m.invocation(t, agentUnit) != was || m.invocation(t, "kubelet.service") != kubelet {
		t.Error("the agent or kubelet was started anew")
	}
}

// withdrawn: what a document does not mention any more is gone, and what provision put
// there stands as it did.
func (m *agentMachine) withdrawn(t *testing.T) {
	const theirs, text = unitDir + "hello.service.d/99-theirs.conf", "[Service]\nNice=7\n"
	m.applied(t, m.ask(t, withDropIn(hello("beside theirs"))))
	check(t, m.node.WriteFile(theirs, []byte(text), 0o644))
	run(t, m.node, "systemctl", "daemon-reload")
	m.applied(t, m.ask(t, withDropIn(hello("still beside theirs"))))
	before := invocations(t, m.node)
	m.applied(t, m.ask(t, "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:\n  files:\n"+oscFile("/etc/hello/b.conf", "b")))
	if _, err := m.node.ReadFile(helloFile); err == nil {
		t.Error("the file is left")
	}
	if s := run(t, m.node, "systemctl", "show", "-p", "LoadState", "--value", "hello.service"); strings.TrimSpace(s) != "not-found" {
		t.Errorf("hello.service is %s", s)
	}
	if got := read(t, m.node, theirs); got != strings.TrimSpace(text) || m.node.Exists(helloDropIn) {
		t.Errorf("their drop-in is %q, ours is there: %v", got, m.node.Exists(helloDropIn))
	}
	run(t, m.node, "rm", "-r", unitDir+"hello.service.d")
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	planIsEmpty(t, m.lab, m.node)
	t.Log(run(t, m.node, "sh", "-c", "grep -E 'VmRSS|VmHWM|Threads' /proc/$(systemctl show -p MainPID --value "+agentUnit+")/status"))
}

// reset: the agent goes with all that it put there; the node of provision stays, and the
// machine is as it was before bootstrap but for the token, which was used.
func (m *agentMachine) reset(t *testing.T) {
	m.applied(t, m.ask(t, hello("last")))
	before := invocations(t, m.node)
	run(t, m.node, berthPath, "agent", "reset")
	if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	if diff := cmp.Diff(m.before, m.everything(t)); diff != "" {
		t.Errorf("the machine is not as before (-before +after):\n%s", diff)
	}
	planIsEmpty(t, m.lab, m.node)
}

// everything is each file of the machine with its kind, mode, owner and content, and each
// unit with its states. Left out is the token, the content of the configuration, into which
// the agent has written its Secret's name, and what changes by itself: logs, what containerd,
// kubelet and systemd write down of what runs, and which run of berth was the last.
func (m *agentMachine) everything(t *testing.T) []string {
	t.Helper()
	return strings.Split(run(t, m.node, "sh", "-c", everything), "\n")
}

const everything = `files() { find / -xdev \( -path /tmp -o -path /var/log -o -path /var/lib/systemd -o -path /var/lib/containerd -o -path /var/lib/kubelet/pods \
	-o -path ` + agentDir + `/credentials/bootstrap-token \) -prune -o "$@"; }
files -printf '%p %y %m %U %G %l\n' | sort
files -type f -size -4096k ! -path /var/lib/berth/ledger.json ! -path /var/lib/berth/ended ! -path /var/lib/berth/timeline.json \
	! -path ` + agentDir + `/config-v0.0.1.yaml -exec sha256sum {} + | sort -k2
systemctl list-unit-files --no-legend --plain | sort
systemctl list-units --all --no-legend --plain -t service,timer,path,socket,mount,target | awk '{print $1, $2, $3, $4}' | sort`
