package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab/internal/serve"
)

// TestAgentPolicies follows a node whose operator says what becomes of drift and when a
// document comes, and one whose documents are in the way of each other or of the machine.
func TestAgentPolicies(t *testing.T) {
	parallelLong(t)
	reg := serveImages(t, sharedLab(t))
	m := newAgent(t, "agent-policies", reg.trust())
	m.parts(t, []agentPart{
		{"first document", m.firstAlike}, {"what provision put there", m.alike}, {"policies", m.policies}, {"storm", m.storm}, {"pause by annotation", m.pausedByAnnotation},
		{"delay", m.delay}, {"units that fail or hang", m.unitsThatHang}, {"half-way and back", m.halfWay}, {"broken containerd", m.brokenRuntime},
		{"one image, without containerd", func(t *testing.T) { m.filesOfOneImage(t, reg) }},
	})
}

// firstAlike: the first document asks for what provision put there.
func (m *agentMachine) firstAlike(t *testing.T) {
	was := m.made(t)
	m.firstOf(t, m.alikeDocument(t))
	if now := m.made(t); now != was {
		t.Errorf("files were written:\n%s\n%s", was, now)
	}
}

// made is what of provision's files shows that they were written.
func (m *agentMachine) made(t *testing.T) string {
	t.Helper()
	return run(t, m.node, "stat", "-c", "%n %a %i %y", unitDir+"kubelet.service", flagsPath, containerdToml)
}

// alikeDocument asks for hello, and for what provision put there.
func (m *agentMachine) alikeDocument(t *testing.T) string {
	t.Helper()
	files, units := oscFile(helloFile, "one"), oscUnit("hello.service", helloUnit, helloFile)
	content := func(p string) string {
		data, err := m.node.ReadFile(p)
		check(t, err)
		return string(data)
	}
	for _, p := range []string{flagsPath, containerdToml} {
		info, err := m.node.Stat(p)
		check(t, err)
		files += strings.Replace(oscFile(p, content(p)), "420", fmt.Sprint(int(info.Mode().Perm())), 1)
	}
	units += oscUnit("kubelet.service", content(unitDir+"kubelet.service"), flagsPath) + "  - name: containerd.service\n    command: start\n    filePaths: [" + containerdToml + "]\n"
	return oscDocument(files, units)
}

// alike: a document that asks for what provision put there disturbs nothing, nor does one
// that does not name it any more.
func (m *agentMachine) alike(t *testing.T) {
	before, was := invocations(t, m.node), m.made(t)
	for _, text := range []string{hello("one"), m.alikeDocument(t), hello("one")} {
		m.applied(t, m.ask(t, text))
		if got := restarted(before, invocations(t, m.node)); len(got) > 0 {
			t.Errorf("restarted: %q", got)
		}
		if now := m.made(t); now != was {
			t.Errorf("files were written:\n%s\n%s", was, now)
		}
	}
	planIsEmpty(t, m.lab, m.node)
}

// policies: what is to be reported or ignored stays as others made it, and all else is
// repaired.
func (m *agentMachine) policies(t *testing.T) {
	const reported, ignored = "/etc/hello/reported.conf", "/etc/hello/ignored.conf"
	m.options(t, agentOptions[:len(agentOptions)-len("}\n")]+", paths: [{path: "+reported+", policy: report}, {path: "+ignored+", policy: ignore}, {path: hello.service, policy: report}]}\n")
	m.applied(t, m.ask(t, oscDocument(oscFile(helloFile, "one")+oscFile(reported, "good")+oscFile(ignored, "good"), oscUnit("hello.service", helloUnit, helloFile))))
	run(t, m.node, "sh", "-c", "echo theirs >"+ignored+"; echo theirs >"+reported+"; systemctl stop hello.service; echo theirs >"+helloFile)
	m.becomes(t, helloFile, "one")
	m.event(t, "DriftReported", reported)
	m.event(t, "DriftReported", "hello.service")
	for _, p := range []string{reported, ignored} {
		if got := read(t, m.node, p); got != "theirs" {
			t.Errorf("%s is %q", p, got)
		}
	}
	if s := run(t, m.node, "systemctl", "show", "-P", "ActiveState", "hello.service"); s != "inactive\n" {
		t.Errorf("hello.service is %s", s)
	}
	m.noEvent(t, ignored)
	m.options(t, agentOptions)
	m.becomes(t, ignored, "good")
	m.applied(t, m.ask(t, hello("one")))
}

// noEvent fails where an event about the Node has a text.
func (m *agentMachine) noEvent(t *testing.T, text string) {
	t.Helper()
	events, err := m.lab.Client().CoreV1().Events("default").List(within(t, 10*time.Second), metav1.ListOptions{})
	check(t, err)
	for _, e := range events.Items {
		if e.InvolvedObject.Name == m.node.Name && strings.Contains(e.Message, text) {
			t.Errorf("event %s: %s", e.Reason, e.Message)
		}
	}
}

// storm: a writer that does not give way has its file for the time of the pause, and not
// for longer.
func (m *agentMachine) storm(t *testing.T) {
	m.options(t, "jitter: 0s\ndrift: {stormGuard: {repairs: 3, within: 1m, pause: 25s}}\n")
	run(t, m.node, "systemd-run", "-q", "--unit=writer", "sh", "-c", "while :; do echo theirs >"+helloFile+"; sleep 0.2; done")
	m.event(t, "DriftStorm", helloFile)
	time.Sleep(time.Second) // it writes on
	run(t, m.node, "systemctl", "stop", "writer.service")
	if got := read(t, m.node, helloFile); got != "theirs" {
		t.Errorf("in the pause it is %q", got)
	}
	m.becomes(t, helloFile, "one")
	m.options(t, agentOptions)
}

const (
	pauseAnnotation = "berth.dev/agent-pause-until"
	delayAnnotation = "node-agent.gardener.cloud/reconciliation-delay"
)

// pausedByAnnotation: a time on the Node lets repairs rest, and no document.
func (m *agentMachine) pausedByAnnotation(t *testing.T) {
	m.patch(t, `{"metadata":{"annotations":{%q:%q}}}`, pauseAnnotation, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	eventually(t, "pause", 30*time.Second, func() bool {
		run(t, m.node, "sh", "-c", "echo paused >"+helloFile)
		time.Sleep(3 * time.Second)
		return read(t, m.node, helloFile) == "paused"
	})
	m.applied(t, m.ask(t, hello("in a pause")))
	m.becomes(t, helloFile, "in a pause")
	run(t, m.node, "sh", "-c", "echo paused >"+helloFile)
	m.patch(t, `{"metadata":{"annotations":{%q:null}}}`, pauseAnnotation)
	m.becomes(t, helloFile, "in a pause")
}

// delay: a new document waits as long as the Node says.
func (m *agentMachine) delay(t *testing.T) {
	const delay = 6 * time.Second
	m.patch(t, `{"metadata":{"annotations":{%q:%q}}}`, delayAnnotation, delay.String())
	time.Sleep(3 * time.Second) // nothing tells when the agent has heard of it
	start := time.Now()
	sum := m.ask(t, hello("later"))
	time.Sleep(delay / 2)
	if got := read(t, m.node, helloFile); got != "in a pause" {
		t.Errorf("half way it is %q", got)
	}
	m.applied(t, sum)
	if took := time.Since(start); took < delay {
		t.Errorf("it was in force after %s", took)
	}
	m.patch(t, `{"metadata":{"annotations":{%q:null}}}`, delayAnnotation)
}

// unitsThatHang: a unit that fails and one that never starts keep neither other units nor
// tokens from coming, and are named. What ran well and is started anew beside them stays.
func (m *agentMachine) unitsThatHang(t *testing.T) {
	former := m.invocation(t, "hello.service")
	units := oscUnit("hello.service", helloUnit, helloFile) +
		oscUnit("bad.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n") +
		oscUnit("hang.service", "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n") +
		oscUnit("well.service", strings.Replace(helloUnit, "hello", "well", 1))
	m.ask(t, oscDocument(oscFile(helloFile, "beside")+oscFile("/etc/hello/b.conf", "b"), units))
	active := func(unit, want string) {
		t.Helper()
		eventually(t, unit, 30*time.Second, func() bool {
			s, _ := m.node.Output(within(t, 10*time.Second), "systemctl", "show", "-P", "ActiveState", unit)
			return strings.TrimSpace(s) == want
		})
	}
	active("hang.service", "activating")
	active("bad.service", "failed")
	active("well.service", "active")
	secrets := m.lab.Client().CoreV1().Secrets("kube-system")
	_, err := secrets.Create(within(t, 10*time.Second), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.token}, Data: map[string][]byte{"token": []byte("meanwhile")}}, metav1.CreateOptions{})
	check(t, err)
	m.becomes(t, agentTokenFile, "meanwhile")
	active("hang.service", "activating")
	// The agent tries again, and again waits for minutes unless somebody stops the unit.
	run(t, m.node, "systemd-run", "-q", "--unit=stopper", "sh", "-c", "while :; do systemctl stop hang.service; sleep 0.5; done")
	if said := m.condition(t, corev1.ConditionFalse); !containsAll(said, "bad.service", "hang.service") {
		t.Errorf("it says %q", said)
	}
	m.stands(t, "SystemdUnitsReady", corev1.ConditionFalse, "bad.service")
	if got := read(t, m.node, helloFile); got != "beside" || m.invocation(t, "hello.service") == former || m.node.Exists("/var/lib/berth/trial.json") {
		t.Errorf("hello.service was taken back, or was not started anew: %q", got)
	}
	m.applied(t, m.ask(t, hello("after")))
	m.condition(t, corev1.ConditionTrue)
	run(t, m.node, "systemctl", "stop", "stopper.service")
	for _, u := range []string{"bad.service", "hang.service", "well.service"} {
		if s := run(t, m.node, "systemctl", "show", "-P", "LoadState", u); s != "not-found\n" {
			t.Errorf("%s is %s", u, s)
		}
	}
}

// halfWay: what a document that fails half-way has changed, without a trial, is undone by the
// one before it.
func (m *agentMachine) halfWay(t *testing.T) {
	m.options(t, agentOptions+"trial: false\n")
	good := withDropIn(hello("A"))
	m.applied(t, m.ask(t, good))
	all := func() []string {
		return slices.DeleteFunc(m.everything(t), func(s string) bool { return strings.HasSuffix(s, "/var/lib/berth/agent.json") }) // it has times
	}
	before := all()
	bad := oscDocument(oscFile(helloFile, "B")+oscFile("/etc/hello/b.conf", "b"),
		oscUnit("hello.service", strings.Replace(helloUnit, "/bin/sleep infinity", "/bin/false", 1), helloFile)+oscUnit("other.service", helloUnit, helloFile))
	m.ask(t, bad)
	if said := m.condition(t, corev1.ConditionFalse); !strings.Contains(said, "hello.service") || strings.Contains(said, "last good") {
		t.Errorf("it says %q", said)
	}
	m.becomes(t, helloFile, "B")
	m.applied(t, m.ask(t, good))
	m.condition(t, corev1.ConditionTrue)
	if diff := cmp.Diff(before, all()); diff != "" {
		t.Errorf("it is not as before (-before +after):\n%s", diff)
	}
	m.options(t, agentOptions)
}

// brokenRuntime: containerd that somebody's edit keeps from starting runs again.
func (m *agentMachine) brokenRuntime(t *testing.T) {
	const dropIn = unitDir + "containerd.service.d/90-nice.conf"
	m.applied(t, m.ask(t, strings.Replace(hello("after"), "  units:\n", "  units:\n  - name: containerd.service\n    command: start\n    dropIns: [{name: 90-nice.conf, content: \"[Service]\\nNice=-1\\n\"}]\n", 1)))
	run(t, m.node, "sh", "-c", "printf '[Service]\\nExecStartPre=/bin/false\\n' >/etc/other; mv -T /etc/other "+dropIn+"; systemctl daemon-reload; systemctl restart containerd.service; true")
	if err := m.node.Run(within(t, 30*time.Second), "sh", "-c", "until grep -q Nice=-1 "+dropIn+" && [ \"$(systemctl show -P ActiveState containerd.service) $(systemctl show -P Nice containerd.service)\" = 'active -1' ]; do sleep 0.05; done"); err != nil {
		t.Errorf("%v\n%s", err, run(t, m.node, "sh", "-c", "systemctl status --no-pager containerd.service; journalctl -n 30 --no-pager -u "+agentUnit))
	}
	_, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name)
	check(t, err)
	m.applied(t, m.ask(t, hello("after")))
}

// filesOfOneImage: files come out of an image without containerd, and each part of the
// image is asked for once.
func (m *agentMachine) filesOfOneImage(t *testing.T, reg *images) {
	want := map[string]string{"/a": "first", "/b": "second", "/c": "third"}
	image := serve.Image{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		image.Files = append(image.Files, serve.Entry{Name: name[1:], Data: []byte(want[name])})
	}
	digest, err := reg.Push(within(t, time.Minute), "files:1", image)
	check(t, err)
	files := oscFile(helloFile, "after")
	for name := range want {
		files += "  - path: /etc/hello" + name + "\n    permissions: 420\n    content: {imageRef: {image: '" + reg.server + "/files:1@" + digest + "', filePathInImage: " + name + "}}\n"
	}
	run(t, m.node, "systemctl", "stop", "kubelet.service", "containerd.service")
	document := oscDocument(files, oscUnit("hello.service", helloUnit, helloFile))
	has := func() {
		t.Helper()
		m.applied(t, m.ask(t, document))
		for name, text := range want {
			m.becomes(t, "/etc/hello"+name, text)
		}
	}
	has()
	asked := m.askedFor(reg)
	for path, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	if len(asked) < 2 || len(asked) > 4 {
		t.Errorf("asked for %v", asked)
	}
	if s := run(t, m.node, "systemctl", "show", "-P", "ActiveState", "containerd.service"); s != "inactive\n" {
		t.Errorf("containerd is %s", s)
	}
	m.applied(t, m.ask(t, hello("after")))
	has() // by now it is in the cache
	if diff := cmp.Diff(asked, m.askedFor(reg)); diff != "" {
		t.Errorf("asked for again:\n%s", diff)
	}
	m.applied(t, m.ask(t, hello("after")))
	run(t, m.node, "systemctl", "start", "containerd.service", "kubelet.service")
	_, err = m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name)
	check(t, err)
}

// askedFor is how often each part of the image was asked for.
func (m *agentMachine) askedFor(reg *images) map[string]int {
	asked := map[string]int{}
	for _, r := range reg.Requests() {
		if strings.Contains(r.Path, "/files/") && r.Method == "GET" {
			asked[r.Path]++
		}
	}
	return asked
}
