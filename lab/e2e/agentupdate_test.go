package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/lab/internal/serve"
)

const (
	updateProgram = "/opt/bin/gardener-node-agent"
	updateVersion = "v9.9.9-update"
	updateTimer   = "/run/systemd/system/berth-revert.timer"
	// updateUnit is as a cluster manager ships it: it knows nothing of berth.
	updateUnit = "[Unit]\nDescription=node agent\nAfter=network-online.target\n[Service]\nLimitMEMLOCK=infinity\n" +
		"ExecStart=" + updateProgram + " --config-dir=" + agentDir + "\nRestart=always\nRestartSec=5\n[Install]\nWantedBy=multi-user.target\n"
	updateOptions = "jitter: 0s\nupdateWithin: 15s\ndrift: {stormGuard: {repairs: 50}}\n"
)

// TestAgentUpdate gives the agents of machines other agents by their documents: one that
// works takes its place, one that does not leaves it there, and who is not berth is kept
// out, unless it is allowed.
func TestAgentUpdate(t *testing.T) {
	t.Parallel()
	done := turnLong(t)
	reg := serveImages(t, sharedLab(t))
	images := map[string]string{}
	for name, program := range agentPrograms(t) {
		digest, err := reg.Push(within(t, time.Minute), "agent:"+name, serve.StaticImage("agent", program))
		check(t, err)
		images[name] = reg.server + "/agent:" + name + "@" + digest
	}
	done()
	for machine, parts := range map[string]func(*agentUpdate) []agentPart{
		"update-fails": func(u *agentUpdate) []agentPart {
			return []agentPart{{"fails at once", u.failsAtOnce}}
		},
		"update-works": func(u *agentUpdate) []agentPart {
			return []agentPart{{"good", u.good}, {"another architecture", u.anotherArchitecture}, {"hangs, and a power cut", u.powerCut}, {"kept out", u.keptOut}, {"reset beside another contract", u.resetNamed}}
		},
		"update-foreign": func(u *agentUpdate) []agentPart {
			return []agentPart{{"allowed and failing", u.allowedFails}, {"allowed", u.allowed}}
		},
	} {
		t.Run(machine, func(t *testing.T) {
			parallelLong(t)
			m := newAgent(t, machine, reg.trust())
			m.first(t)
			m.options(t, updateOptions)
			m.parts(t, parts(&agentUpdate{agentMachine: m, images: images, before: berthPath}))
		})
	}
}

// agentPrograms are the programs of the images, by tag: berth of another version, what
// says by its build that it is berth and does not work, and what is not berth.
func agentPrograms(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{"good": filepath.Join(dir, "good"), "foreign": filepath.Join(dir, "foreign")}
	build := func(in, name, flags, arch string) {
		t.Helper()
		c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w "+flags, "-o", filepath.Join(dir, name), "./cmd/berth")
		c.Dir, c.Env = in, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOARCH="+arch)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		out[name] = filepath.Join(dir, name)
	}
	build("../..", "good", "-X github.com/berth-dev/berth/internal/cli.version="+updateVersion, "amd64")
	for name, main := range map[string]string{"fails": "os.Exit(1)", "hangs": "time.Sleep(time.Hour)", "arm64": "os.Exit(0)"} {
		at := filepath.Join(dir, name+".d")
		text := "package main\n\nimport (\n\t\"os\"\n\t\"time\"\n)\n\nfunc main() {\n\t" + main + "\n\tos.Exit(int(time.Second))\n}\n"
		check(t, os.MkdirAll(filepath.Join(at, "cmd", "berth"), 0o755))
		check(t, os.WriteFile(filepath.Join(at, "go.mod"), []byte("module github.com/berth-dev/berth\n"), 0o600))
		check(t, os.WriteFile(filepath.Join(at, "cmd", "berth", "main.go"), []byte(text), 0o600))
		arch := "amd64"
		if name == "arm64" {
			arch = name
		}
		build(at, name, "", arch)
	}
	check(t, os.WriteFile(out["foreign"], []byte("#!/bin/sh\nexec sleep infinity\n"), 0o755))
	return out
}

// agentUpdate is a node whose document has its agent, out of one of the images. before
// is the program that ran last.
type agentUpdate struct {
	*agentMachine
	images map[string]string
	before string
}

// document asks for the agent of an image, and for a text in a file.
func (u *agentUpdate) document(tag, unit, text string) string {
	file := fmt.Sprintf("  - path: %s\n    permissions: 493\n    content: {imageRef: {image: %q, filePathInImage: /agent}}\n", updateProgram, u.images[tag])
	return oscDocument(oscFile(helloFile, text)+file, oscUnit("hello.service", helloUnit, helloFile)+oscUnit(agentUnit, unit, updateProgram))
}

// runs is the program of the agent's process.
func (m *agentMachine) runs(t *testing.T) string {
	t.Helper()
	r, err := m.node.Exec(within(t, 10*time.Second), "sh", "-c", "readlink /proc/$(systemctl show -P MainPID "+agentUnit+")/exe")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(r.Stdout))
}

// options gives the agent other options, with which it starts anew.
func (m *agentMachine) options(t *testing.T, text string) {
	t.Helper()
	was := m.invocation(t, agentUnit)
	check(t, m.node.WriteFile(optionsFile, m.optionsOf(text), 0o600))
	eventually(t, "start of the agent with its options", 20*time.Second, func() bool {
		return m.invocation(t, agentUnit) != was && strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "ActiveState", agentUnit)) == "active"
	})
}

// settled: nothing waits, and the agent that ran before runs.
func (u *agentUpdate) settled(t *testing.T) {
	t.Helper()
	eventually(t, "the agent "+u.before, 40*time.Second, func() bool {
		return u.runs(t) == u.before && !u.node.Exists("/var/lib/berth/trial.json") && strings.TrimSpace(run(t, u.node, "systemctl", "show", "-P", "ActiveState", agentUnit)) == "active"
	})
	for _, p := range []string{updateTimer, "/etc/systemd/system/berth-restore.service"} {
		if u.node.Exists(p) {
			t.Errorf("%s is left", p)
		}
	}
}

// good: the new agent takes the old one's place, tells systemd that it works and lives,
// and nothing else stirs.
func (u *agentUpdate) good(t *testing.T) {
	before := invocations(t, u.node)
	start := time.Now()
	sum := u.ask(t, u.document("good", updateUnit, "good"))
	u.event(t, "AgentUpdated", updateProgram[strings.LastIndex(updateProgram, "/"):])
	u.applied(t, sum)
	t.Logf("the new agent is in place after %.1f s", time.Since(start).Seconds())
	u.becomes(t, helloFile, "good")
	u.condition(t, corev1.ConditionTrue)
	u.before = u.runs(t)
	if !strings.HasPrefix(u.before, "/opt/bin/.berth-agent/") {
		t.Errorf("it runs %s", u.before)
	}
	if got := strings.TrimSpace(run(t, u.node, updateProgram, "version")); got != updateVersion {
		t.Errorf("version %s", got)
	}
	u.settled(t)
	got := strings.Fields(run(t, u.node, "systemctl", "show", "-p", "Type", "-p", "WatchdogUSec", "-p", "NeedDaemonReload", agentUnit))
	slices.Sort(got)
	if want := []string{"NeedDaemonReload=no", "Type=notify", "WatchdogUSec=1min"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := restarted(before, invocations(t, u.node)); len(got) > 0 {
		t.Errorf("restarted: %q", got)
	}
	was := u.invocation(t, agentUnit)
	u.applied(t, u.ask(t, u.document("good", updateUnit, "good again")))
	if u.invocation(t, agentUnit) != was {
		t.Error("the same agent was started anew")
	}
}

// failsAtOnce: a document's agent that has fallen back is not tried again.
func (u *agentUpdate) failsAtOnce(t *testing.T) {
	sum := u.fallsBack(t, "fails")
	u.options(t, updateOptions+"# anew\n")
	u.told(t, sum)
	if u.node.Exists(updateTimer) {
		t.Error("it is tried again")
	}
}

// fallsBack: all else of the document is in force, the agent before runs again by
// systemd alone, and tells why.
func (u *agentUpdate) fallsBack(t *testing.T, tag string) (checksum string) {
	start := time.Now()
	sum := u.ask(t, u.document(tag, updateUnit, tag))
	u.becomes(t, helloFile, tag)
	eventually(t, "trial", 30*time.Second, func() bool { return u.node.Exists(updateTimer) })
	u.told(t, sum)
	t.Logf("back after %.1f s", time.Since(start).Seconds())
	return sum
}

// anotherArchitecture: a program that this machine can't run is refused before it comes
// in anybody's place.
func (u *agentUpdate) anotherArchitecture(t *testing.T) {
	was := u.invocation(t, agentUnit)
	sum := u.ask(t, u.document("arm64", updateUnit, "arm64"))
	u.becomes(t, helloFile, "arm64")
	if said := u.condition(t, corev1.ConditionFalse); !strings.Contains(said, "architecture is arm64") {
		t.Errorf("it says %q", said)
	}
	if u.invocation(t, agentUnit) != was || nodeOf(t, u.lab, u.node).Annotations[agentApplied] == sum {
		t.Error("the agent was started anew, or the Node says that the document is in force")
	}
	u.settled(t)
}

// told: the Node says that the agent of a document has fallen back, and what to do.
func (u *agentUpdate) told(t *testing.T, sum string) {
	t.Helper()
	eventually(t, "fall back", time.Minute, func() bool {
		text, err := u.node.ReadFile("/var/lib/berth/agent-update.json")
		return err == nil && strings.Contains(string(text), `"fellBack":"`+sum)
	})
	node, err := u.lab.WaitNode(within(t, time.Minute), u.node.Name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == "OperatingSystemConfigApplied" && c.Reason == "AgentUpdateFailed" {
				return strings.Contains(c.Message, "ERR_SYSTEMCTL_START_FAIL") && strings.Contains(c.Message, "spec.") && strings.Contains(c.Message, "Change the document")
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	u.event(t, "AgentUpdateFailed", "did not prove itself within 15s")
	if node.Annotations[agentApplied] == sum {
		t.Error("the Node says that the document is in force")
	}
	u.settled(t)
}

// powerCut: a boot brings the agent before back, without the network; the new one is
// tried once more, for a power cut says nothing of it.
func (u *agentUpdate) powerCut(t *testing.T) {
	sum := u.ask(t, u.document("hangs", updateUnit, "power"))
	u.becomes(t, helloFile, "power")
	eventually(t, "trial", 30*time.Second, func() bool { return u.node.Exists(updateTimer) && u.runs(t) != u.before })
	check(t, u.node.Crash(within(t, time.Minute)))
	check(t, u.node.Start(within(t, time.Minute)))
	if _, err := u.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if said := run(t, u.node, "journalctl", "-b", "--no-pager", "-o", "cat", "-u", "berth-restore.service"); !strings.Contains(said, "the last good configuration is in force again") {
		t.Errorf("the boot says %s", said)
	}
	u.told(t, sum)
}

// keptOut: a program that is not berth does not come in its place; the rest of the
// document does, and the Node says that it is in force.
func (u *agentUpdate) keptOut(t *testing.T) {
	was := u.invocation(t, agentUnit)
	u.applied(t, u.ask(t, u.document("foreign", updateUnit, "foreign")))
	u.becomes(t, helloFile, "foreign")
	u.event(t, "ForeignAgent", "is not berth and is kept out")
	u.condition(t, corev1.ConditionTrue)
	other := strings.Replace(updateUnit, updateProgram+" ", "/bin/false ", 1)
	u.applied(t, u.ask(t, u.document("good", other, "foreign unit")))
	u.event(t, "ForeignAgent", "/bin/false is not berth")
	if u.invocation(t, agentUnit) != was || u.runs(t) != u.before {
		t.Error("the agent was started anew")
	}
	u.settled(t)
}

// resetNamed: on a machine with no other berth a unit of the AKS document starts the agent's
// program. It stays at reset, is named with that unit, and goes when the document asks for it
// no more.
func (u *agentUpdate) resetNamed(t *testing.T) {
	made, err := u.node.ReadFile(configPath)
	check(t, err)
	away := func(from, to string) {
		t.Helper()
		for _, p := range []string{controllerPath, berthPath} {
			run(t, u.node, "mv", p+from, p+to)
		}
	}
	away("", ".away")
	u.replace(t, configPath, string(document(t, nodeConfig(t, u.lab, restricted))))
	u.options(t, updateOptions+"sources: {aksNodeConfig: "+configPath+"}\n")
	u.stands(t, "AKSNodeConfigApplied", corev1.ConditionTrue, "")
	dropIn := strings.TrimSpace(run(t, u.node, "sh", "-c", "grep -l "+updateProgram+" /etc/systemd/system/kubelet.service.d/*"))
	reset := func(by string) (said string, code int) {
		t.Helper()
		r, err := u.node.Exec(within(t, time.Minute), "sh", "-c", by+" reset 2>&1")
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Stdout), r.Code
	}
	said, code := reset(updateProgram)
	if code != 4 || !strings.Contains(said, updateProgram+": "+dropIn+" names it") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if got := strings.TrimSpace(run(t, u.node, updateProgram, "version")); got != updateVersion {
		t.Errorf("version %s", got)
	}
	run(t, u.node, "systemctl", "restart", "kubelet.service")
	if u.node.Exists(unitDir + agentUnit) {
		t.Error("the agent is left")
	}
	away(".away", "")
	u.replace(t, configPath, string(made))
	run(t, u.node, berthPath, "apply", "-f", configPath)
	if said, code = reset(berthPath + " agent"); code != 0 || u.node.Exists(updateProgram) || u.node.Exists("/opt/bin/.berth-agent") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// allowedFails: where it is allowed, one that does not stay up is taken back, too.
func (u *agentUpdate) allowedFails(t *testing.T) {
	u.options(t, updateOptions+"foreignAgent: allow\n")
	u.told(t, u.ask(t, u.document("good", strings.Replace(updateUnit, updateProgram+" ", "/bin/false ", 1), "allowed")))
}

// allowed: one that stays up has the agent's place from then on.
func (u *agentUpdate) allowed(t *testing.T) {
	u.options(t, updateOptions+"foreignAgent: allow\n# and works\n")
	u.ask(t, u.document("foreign", updateUnit, "allowed"))
	eventually(t, "the other agent", 30*time.Second, func() bool { return strings.Contains(u.runs(t), "sleep") })
	eventually(t, "its place", time.Minute, func() bool { return !u.node.Exists("/var/lib/berth/trial.json") })
	if got := u.runs(t); !strings.Contains(got, "sleep") {
		t.Errorf("%s runs", got)
	}
}
