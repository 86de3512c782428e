package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	trialNote    = "/var/lib/berth/trial.json"
	trialPod     = "trial-pod"
	flagsPath    = "/etc/default/kubelet"
	changedPath  = "/root/changed.json"
	restoreUnit  = "/etc/systemd/system/berth-restore.service"
	theirDropIn  = "/etc/systemd/system/kubelet.service.d/99-theirs.conf"
	theirRuntime = "/etc/containerd/conf.d/99-theirs.toml"
)

// TestTrial follows one Ready node through changes that hold and changes that do
// not. Each part leaves it as its configuration says.
func TestTrial(t *testing.T) {
	parallelLong(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "trial", UserData: customData(t, nodeConfig(t, l, often))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	run(t, n, controllerPath, "provision-wait")
	runPod(t, l, trialPod, n.Name)
	m := &trialMachine{l, n}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"value", m.badValue}, {"unknown flag", m.unknownFlag}, {"containerd", m.badContainerd},
		{"good", m.good}, {"theirs", m.theirs}, {"their runtime", m.theirRuntime}, {"no revert", m.noRevert}, {"API server away", m.serverAway}, {"interrupted", m.interrupted},
		{"confirmed", m.confirmed}, {"not confirmed", m.notConfirmed}, {"credential", m.credential},
		{"killed", m.killed}, {"reboot", m.reboot}, {"power loss", m.powerLoss},
	} {
		if !t.Run(part.name, part.run) {
			t.Fatalf("after %s the node is not what the other parts expect", part.name)
		}
	}
}

// trialMachine is a Ready node with a pod.
type trialMachine struct {
	lab  *lab.Lab
	node *lab.Node
}

// often lets kubelet say every two seconds how it stands: after a restart it says so
// once before it has looked at its pods, and then at its next time.
func often(c *aksnodeconfigv1.Configuration) {
	flagged("--node-status-update-frequency", "2s")(c)
}

// flagged changes kubelet's flags.
func flagged(name, value string) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.KubeletFlags[name] = value }
}

// change writes a changed configuration.
func (m *trialMachine) change(t *testing.T, edit ...func(*aksnodeconfigv1.Configuration)) {
	t.Helper()
	if err := m.node.WriteFile(changedPath, document(t, nodeConfig(t, m.lab, append(edit, often)...)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// apply applies a document and returns what was said.
func (m *trialMachine) apply(t *testing.T, code int, file string, args ...string) string {
	t.Helper()
	start := time.Now()
	r, err := m.node.Exec(within(t, 3*time.Minute), append([]string{berthPath, "apply", "-f", file}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("exit code %d in %.1f s", r.Code, time.Since(start).Seconds())
	if r.Code != code {
		t.Errorf("exit code %d, want %d\n%s", r.Code, code, r.Stderr)
	}
	return string(r.Stderr)
}

// pod is what must not change: the pod's container, and the process that it is.
func (m *trialMachine) pod(t *testing.T) string {
	t.Helper()
	p, err := m.lab.Client().CoreV1().Pods("default").Get(within(t, 10*time.Second), trialPod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := p.Status.ContainerStatuses[0]
	return fmt.Sprint(p.Status.Phase, " ", s.ContainerID, " ", s.RestartCount, " ", pausePID(t, m.node, trialPod))
}

// isGood waits until the kubelet that runs says that the node is Ready, and checks
// that its configuration is in force and nothing is left of a trial.
func (m *trialMachine) isGood(t *testing.T) {
	t.Helper()
	awaitReadyAgain(t, m.lab, m.node)
	planIsEmpty(t, m.lab, m.node)
	for _, p := range []string{trialNote, restoreUnit, "/run/systemd/system/berth-revert.timer"} {
		if _, err := m.node.ReadFile(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	if s := run(t, m.node, berthPath, "status"); strings.Contains(s, "on trial") {
		t.Errorf("status: %s", s)
	}
}

// awaitReadyAgain waits until the kubelet that runs now has said that the Node is ready.
func awaitReadyAgain(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	at := strings.TrimSpace(run(t, n, "systemctl", "show", "--timestamp=unix", "-p", "ExecMainStartTimestamp", "--value", "kubelet.service"))
	sec, err := strconv.ParseInt(strings.TrimPrefix(at, "@"), 10, 64)
	if err != nil {
		t.Fatalf("kubelet was started at %q", at)
	}
	awaitHeartbeat(t, l, n.Name, time.Unix(sec, 0))
}

// refused applies a change that does not hold: the last configuration is in force,
// the reason stands in the message and nothing else, and the pod has not noticed.
func (m *trialMachine) refused(t *testing.T, says []string, edit ...func(*aksnodeconfigv1.Configuration)) {
	t.Helper()
	before := m.pod(t)
	m.change(t, edit...)
	said := m.apply(t, 1, changedPath)
	t.Log(said)
	m.isGood(t)
	for _, s := range append(says, "the last good configuration is in force again") {
		if !strings.Contains(said, s) {
			t.Errorf("it does not say %q", s)
		}
	}
	for _, s := range []string{"deprecated", "DEPRECATED", "FLAG: "} {
		if strings.Contains(said, s) {
			t.Errorf("it says %q", s)
		}
	}
	_, words, _ := strings.Cut(said, "its last lines")
	well := map[string]string{"kubelet.service": "containerd", "containerd.service": "kubelet"}[says[0]]
	if strings.Contains(words, well) {
		t.Errorf("it has lines of %s, which is well", well)
	}
	if d := cmp.Diff(before, m.pod(t)); d != "" {
		t.Errorf("the pod (-before +after): %s", d)
	}
}

func (m *trialMachine) badValue(t *testing.T) {
	m.refused(t, []string{"kubelet.service", "--max-pods", "invalid syntax"}, flagged("--max-pods", "abc"))
}

func (m *trialMachine) unknownFlag(t *testing.T) {
	m.refused(t, []string{"kubelet.service", "unknown flag: --no-such-flag"}, flagged("--no-such-flag", "1"))
}

// badContainerd has the journal take containerd's words when its run is over and the next
// one has begun: then they say that they are of that one, or of none.
func (m *trialMachine) badContainerd(t *testing.T) {
	run(t, m.node, "sh", "-c", "j=$(pidof systemd-journald); kill -STOP $j; (sleep 2.6; kill -CONT $j) >/dev/null 2>&1 &")
	m.refused(t, []string{"containerd.service", "/proc/berth"}, func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.ContainerDataDir = "/proc/berth" })
}

// good confirms a change by itself, and goes back by the good configuration.
func (m *trialMachine) good(t *testing.T) {
	before := m.pod(t)
	m.change(t, flagged("--max-pods", "50"))
	t.Log(m.apply(t, 0, changedPath))
	awaitReadyAgain(t, m.lab, m.node)
	if _, err := m.node.ReadFile(trialNote); err == nil {
		t.Error("it is still on trial")
	}
	m.apply(t, 0, configPath)
	m.isGood(t)
	if d := cmp.Diff(before, m.pod(t)); d != "" {
		t.Errorf("the pod (-before +after): %s", d)
	}
}

// theirs: somebody's drop-in breaks kubelet, and the change does not concern it.
func (m *trialMachine) theirs(t *testing.T) {
	if err := m.node.WriteFile(theirDropIn, []byte("[Service]\nEnvironment=KUBELET_CGROUP_FLAGS=--theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.change(t, func(c *aksnodeconfigv1.Configuration) {
		backlog := int32(8192)
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{SysctlConfig: &aksnodeconfigv1.SysctlConfig{NetIpv4TcpMaxSynBacklog: &backlog}}
	})
	said := m.apply(t, 1, changedPath)
	if !strings.Contains(said, "would not help") || !strings.Contains(said, theirDropIn) || !strings.Contains(said, "unknown flag: --theirs") {
		t.Error(said)
	}
	run(t, m.node, "rm", theirDropIn)
	m.apply(t, 0, configPath)
	m.isGood(t)
}

// theirRuntime: somebody's part of containerd's configuration shows when a change of
// berth's starts containerd anew. Its own words name the file.
func (m *trialMachine) theirRuntime(t *testing.T) {
	if err := m.node.WriteFile(theirRuntime, []byte("version = \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.change(t, func(c *aksnodeconfigv1.Configuration) {
		files := "65536"
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{UlimitConfig: &aksnodeconfigv1.UlimitConfig{NoFile: &files}}
	})
	said := m.apply(t, 1, changedPath)
	if !strings.Contains(said, theirRuntime) {
		t.Error(said)
	}
	t.Log(said)
	run(t, m.node, "rm", theirRuntime)
	m.apply(t, 0, configPath)
	m.isGood(t)
}

func (m *trialMachine) noRevert(t *testing.T) {
	m.change(t, flagged("--no-such-flag", "1"))
	said := m.apply(t, 1, changedPath, "--no-revert")
	if !strings.Contains(said, "unknown flag") || strings.Contains(said, "in force again") || !strings.Contains(read(t, m.node, flagsPath), "no-such-flag") {
		t.Error(said)
	}
	m.apply(t, 0, configPath)
	m.isGood(t)
}

// serverAway: that the Node can't be asked takes nothing back, and what does not
// start comes back all the same.
func (m *trialMachine) serverAway(t *testing.T) {
	before := m.pod(t)
	withoutServer(t, m.node, "DROP", func() {
		m.change(t, flagged("--max-pods", "52"))
		t.Log(m.apply(t, 0, changedPath))
		if _, err := m.node.ReadFile(trialNote); err == nil {
			t.Error("it is still on trial")
		}
		m.change(t, flagged("--no-such-flag", "1"))
		if said := m.apply(t, 1, changedPath); !strings.Contains(said, "in force again") || !strings.Contains(said, "unknown flag") {
			t.Error(said)
		}
		if flags := read(t, m.node, flagsPath); !strings.Contains(flags, "--max-pods=52") || strings.Contains(flags, "no-such-flag") {
			t.Error(flags)
		}
		run(t, m.node, "systemctl", "is-active", "kubelet.service")
	})
	m.apply(t, 0, configPath)
	m.isGood(t)
	if d := cmp.Diff(before, m.pod(t)); d != "" {
		t.Errorf("the pod (-before +after): %s", d)
	}
}

// interrupted tells a run to stop while it waits for the Node.
func (m *trialMachine) interrupted(t *testing.T) {
	m.change(t, flagged("--max-pods", "51"))
	out := run(t, m.node, "sh", "-c", "rm -f /tmp/said; "+berthPath+" apply -f "+changedPath+" >/tmp/said 2>&1 & p=$!; until grep -qs 'restart unit:kubelet' /tmp/said; do :; done; kill -TERM $p; wait $p; echo code $?; cat /tmp/said")
	if !strings.Contains(out, "code 130") || !strings.Contains(out, "in force again") {
		t.Error(out)
	}
	m.isGood(t)
}

// tryWithin makes a good change that waits for a person.
func (m *trialMachine) tryWithin(t *testing.T, within string) {
	t.Helper()
	m.change(t, flagged("--max-pods", "53"))
	if said := m.apply(t, 0, changedPath, "--confirm-within", within); !strings.Contains(said, "berth confirm") {
		t.Error(said)
	}
	if s := run(t, m.node, berthPath, "status"); !strings.Contains(s, "on trial") || !strings.Contains(s, "berth confirm") {
		t.Errorf("status: %s", s)
	}
	if !strings.Contains(read(t, m.node, flagsPath), "--max-pods=53") {
		t.Error("the change is not in force")
	}
}

func (m *trialMachine) confirmed(t *testing.T) {
	m.tryWithin(t, "5m")
	run(t, m.node, berthPath, "confirm")
	if _, err := m.node.ReadFile(trialNote); err == nil || !strings.Contains(read(t, m.node, flagsPath), "--max-pods=53") {
		t.Error("it is not confirmed")
	}
	m.apply(t, 0, configPath)
	m.isGood(t)
}

func (m *trialMachine) notConfirmed(t *testing.T) {
	m.tryWithin(t, "15s")
	m.isTakenBack(t)
	if r, err := m.node.Exec(within(t, 10*time.Second), berthPath, "confirm"); err != nil || r.Code != 1 {
		t.Errorf("confirm: %v, exit code %d", err, r.Code)
	}
}

// credential: a change of the node's name replaces its credential. The old one comes
// back while nobody reaches the API server, and is not left behind.
func (m *trialMachine) credential(t *testing.T) {
	const kept, other = "/var/lib/berth/contracts/aks.credential", "trial-other"
	inForce := func() string { return read(t, m.node, "/var/lib/kubelet/pki/kubelet-client-current.pem") }
	before := inForce()
	m.change(t, flagged("--hostname-override", other))
	m.apply(t, 0, changedPath, "--confirm-within", "15s")
	defer func() {
		if r, err := m.lab.Kubectl(within(t, 20*time.Second), "delete", "node", other, "--ignore-not-found"); err != nil || r.Code != 0 {
			t.Errorf("%v\n%s", err, r.Stderr)
		}
	}()
	if inForce() == before {
		t.Error("the change replaced nothing")
	}
	if mode := run(t, m.node, "stat", "-c", "%a", kept); strings.TrimSpace(mode) != "600" {
		t.Errorf("mode %s", mode)
	}
	withoutServer(t, m.node, "DROP", func() {
		if err := m.node.WaitFor(within(t, time.Minute), "test", "!", "-e", trialNote); err != nil {
			t.Fatal(err, run(t, m.node, "journalctl", "-b", "--no-pager", "-u", "berth-revert"))
		}
		if inForce() != before {
			t.Error("the old credential is not back")
		}
		run(t, m.node, "systemctl", "is-active", "kubelet.service")
	})
	if _, err := m.node.ReadFile(kept); err == nil {
		t.Error("the credential is still kept")
	}
	m.isGood(t)
}

// isTakenBack waits until nothing is on trial any more.
func (m *trialMachine) isTakenBack(t *testing.T) {
	t.Helper()
	if err := m.node.WaitFor(within(t, time.Minute), "test", "!", "-e", trialNote); err != nil {
		t.Fatal(err, run(t, m.node, "journalctl", "-b", "--no-pager", "-u", "berth-restore", "-u", "berth-revert"))
	}
	m.isGood(t)
}

// killed: a trial whose run is killed waits for the next run.
func (m *trialMachine) killed(t *testing.T) {
	m.kill(t)
	if s := run(t, m.node, berthPath, "status"); !strings.Contains(s, "on trial") {
		t.Errorf("status: %s", s)
	}
	m.apply(t, 0, configPath)
	m.isGood(t)
}

// kill kills a run when kubelet has been started anew.
func (m *trialMachine) kill(t *testing.T) {
	t.Helper()
	m.change(t, flagged("--max-pods", "54"))
	run(t, m.node, "sh", "-c", "rm -f /tmp/said; "+berthPath+" apply -f "+changedPath+" >/tmp/said 2>&1 & p=$!; until grep -qs 'update file:/etc/default/kubelet' /tmp/said; do :; done; kill -9 $p; wait $p; true")
	if _, err := m.node.ReadFile(trialNote); err != nil {
		t.Fatal("nothing is on trial:", err, run(t, m.node, "cat", "/tmp/said"))
	}
}

// reboot in the middle counts as not confirmed: kubelet starts once, with the last
// good configuration.
func (m *trialMachine) reboot(t *testing.T) {
	m.tryWithin(t, "5m")
	if err := m.node.Reboot(within(t, rebootTime)); err != nil {
		t.Fatal(err)
	}
	m.hasRestored(t)
}

// powerLoss is one in the middle of a run that was killed.
func (m *trialMachine) powerLoss(t *testing.T) {
	m.kill(t)
	if err := m.node.Crash(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := m.node.Start(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	m.hasRestored(t)
}

func (m *trialMachine) hasRestored(t *testing.T) {
	t.Helper()
	if v, err := m.node.WaitBooted(within(t, time.Minute)); err != nil || v != "running" {
		t.Errorf("boot: %q %v\n%s", v, err, run(t, m.node, "systemctl", "--failed", "--no-pager"))
	}
	m.isTakenBack(t)
	log := "\n" + run(t, m.node, "journalctl", "-b", "--no-pager", "-o", "cat", "-u", "kubelet.service", "_PID=1")
	if starts := strings.Count(log, "\nStarting "); starts != 1 {
		t.Errorf("kubelet was started %d times in this boot:\n%s", starts, log)
	}
	if strings.Contains(run(t, m.node, "sh", "-c", "tr '\\0' ' ' </proc/$(systemctl show -p MainPID --value kubelet)/cmdline"), "--max-pods") {
		t.Error("kubelet runs with the change")
	}
	t.Log(run(t, m.node, "journalctl", "-b", "--no-pager", "-o", "short-monotonic", "-u", "berth-restore.service"))
}
