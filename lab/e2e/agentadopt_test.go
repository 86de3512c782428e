package e2e

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	formerDocument = agentDir + "/last-applied-osc.yaml"
	formerChanges  = agentDir + "/last-computed-osc-changes.yaml"
	formerProgram  = "/opt/former/tool"
	formerDropIn   = "/etc/systemd/system/kubelet.service.d/99-former.conf"
	formerPath     = "/etc/systemd/system/containerd.service.d/30-env_config.conf"
	formerPathText = "[Service]\nEnvironment=\"PATH=/var/bin/containerruntimes:/usr/local/sbin:/usr/bin:/bin\"\n"
	formerUnit     = "[Unit]\nDescription=former\n[Service]\nExecStart=" + formerProgram + "\n[Install]\nWantedBy=multi-user.target\n"
)

// formerFiles are what the published agent has put on the machine, and formerText the
// document that asked for it. The image of the program is nowhere: nobody may pull it.
var formerFiles = map[string]struct {
	text string
	mode string
}{
	helloFile:                  {"one", "644"},
	"/etc/former/b.conf":       {"old", "640"},
	formerProgram:              {"#!/bin/sh\nexec sleep infinity\n", "755"},
	formerDropIn:               {"[Service]\nNice=0\n", "600"},
	unitDir + "hello.service":  {helloUnit, "600"},
	unitDir + "former.service": {formerUnit, "600"},
	formerPath:                 {formerPathText, "600"},
	"/etc/containerd/certs.d/former.test/hosts.toml": {"# managed by gardener-node-agent\nserver = \"https://former.test\"\n\n" +
		"[host.\"https://mirror.test\"]\n  capabilities = [\"pull\",\"resolve\"]\n\n", "644"},
}

const unitDir = "/etc/systemd/system/"

// formerText is the document; units are what that agent added to it for itself.
func formerText(sandbox string, units ...string) string {
	b := strings.Replace(oscFile("/etc/former/b.conf", "old"), "420", "416", 1)
	tool := "  - path: " + formerProgram + "\n    permissions: 493\n    content: {imageRef: {image: 'registry.invalid/tool:1', filePathInImage: /tool}}\n"
	dropIn := "  - name: kubelet.service\n    dropIns: [{name: 99-former.conf, content: \"[Service]\\nNice=0\\n\"}]\n"
	return oscDocument(oscFile(helloFile, "one")+b+tool,
		oscUnit("hello.service", helloUnit, helloFile)+oscUnit("former.service", formerUnit, formerProgram)+dropIn+strings.Join(units, "")) + `  criConfig:
    name: containerd
    cgroupDriver: systemd
    containerd:
      sandboxImage: ` + sandbox + `
      registries: [{upstream: former.test, server: "https://former.test", hosts: [{url: "https://mirror.test", capabilities: [pull, resolve]}]}]
      plugins: [{path: [io.containerd.grpc.v1.cri, containerd, runtimes, former], values: {runtime_type: io.containerd.runc.v2}}]
`
}

// TestAgentAdopts: on a node that the published agent has kept, the agent goes on
// without a stir; what that one put there and a later document does not name goes.
func TestAgentAdopts(t *testing.T) {
	parallel(t)
	m := newAgent(t, "agent-adopts", nil)
	n := m.node
	sandbox := m.former(t)
	m.told(t)
	sum := m.ask(t, formerText(sandbox))
	m.patch(t, `{"metadata":{"annotations":{%q:%q}}}`, agentApplied, sum)
	kept := []string{"hello.service", "former.service"}
	before, units, files := invocations(t, n), began(t, n, kept...), m.changeTimes(t)
	run(t, n, berthPath, "agent", "bootstrap")
	m.condition(t, corev1.ConditionTrue)
	if log := run(t, n, "journalctl", "--no-pager", "-o", "cat", "-u", agentUnit); !strings.Contains(log, `"changes":0`) {
		t.Errorf("the first document changed something:\n%s", log)
	}
	if got := restarted(before, invocations(t, n)); len(got) > 0 || fmt.Sprint(units) != fmt.Sprint(began(t, n, kept...)) {
		t.Errorf("restarted: %q, or one of %q", got, kept)
	}
	if now := m.changeTimes(t); now != files {
		t.Errorf("files were written:\n%s\n%s", files, now)
	}
	if nodeOf(t, m.lab, n).Annotations[agentApplied] != sum {
		t.Error("the annotation is another")
	}
	if n.Exists(formerDocument) || n.Exists(formerChanges) {
		t.Error("what the former agent remembers is left")
	}
	m.leftovers(t, sum)
}

// former lays the machine out as the published agent leaves it. It returns the image
// of sandboxes.
func (m *agentMachine) former(t *testing.T) (sandbox string) {
	t.Helper()
	config, sandbox := m.formerConfig(t)
	for p, f := range formerFiles {
		run(t, m.node, "mkdir", "-p", path.Dir(p))
		if err := m.node.WriteFile(p, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, m.node, "chmod", f.mode, p)
	}
	run(t, m.node, "mkdir", "-p", agentDir)
	own := fmt.Sprintf("  - name: containerd.service\n    dropIns: [{name: 30-env_config.conf, content: %q}]\n", formerPathText)
	for p, text := range map[string]string{containerdToml: config, formerDocument: formerText(sandbox, own), formerChanges: "operatingSystemConfigChecksum: x\n"} {
		if err := m.node.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, m.node, "sh", "-c", "systemctl daemon-reload; systemctl enable --now hello.service former.service; systemctl restart containerd.service kubelet.service")
	if err := m.node.WriteFile(containerdToml, []byte(config), 0o644); err != nil { // it writes it each time
		t.Fatal(err)
	}
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	return sandbox
}

const containerdToml = "/etc/containerd/config.toml"

// formerConfig is containerd's configuration as that agent writes it, comments gone, and
// the image of sandboxes in it.
func (m *agentMachine) formerConfig(t *testing.T) (text, sandbox string) {
	t.Helper()
	for line := range strings.Lines(run(t, m.node, "cat", containerdToml)) {
		if name, value, ok := strings.Cut(line, " = "); ok && name == "sandbox" {
			sandbox = strings.Trim(strings.TrimSpace(value), `'"`)
		}
		if !strings.HasPrefix(line, "#") {
			text += line
		}
	}
	if sandbox == "" || !strings.Contains(text, "config_path") {
		t.Fatalf("not the configuration that was expected:\n%s", text)
	}
	return text + "\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.former]\nruntime_type = 'io.containerd.runc.v2'\n", sandbox
}

// changeTimes are those of the files of the former agent.
func (m *agentMachine) changeTimes(t *testing.T) string {
	t.Helper()
	args := []string{"stat", "-c", "%n %i %z %a"}
	return run(t, m.node, append(args, slices.Sorted(maps.Keys(formerFiles))...)...)
}

// leftovers: the next document does without most of it.
func (m *agentMachine) leftovers(t *testing.T, was string) {
	before := m.invocation(t, "hello.service")
	sum := m.ask(t, hello("one"))
	if sum == was {
		t.Fatal("the documents are the same")
	}
	m.applied(t, sum)
	for p := range formerFiles {
		if stays := p == helloFile || p == unitDir+"hello.service"; m.node.Exists(p) != stays {
			t.Errorf("%s: there is %v, want %v", p, !stays, stays)
		}
	}
	for _, p := range []string{unitDir + "multi-user.target.wants/former.service", "/etc/former/b.conf"} {
		if m.node.Exists(p) {
			t.Errorf("%s is left", p)
		}
	}
	if s := strings.TrimSpace(run(t, m.node, "systemctl", "show", "-p", "LoadState", "--value", "former.service")); s != "not-found" {
		t.Errorf("former.service is %s", s)
	}
	if m.invocation(t, "hello.service") != before {
		t.Error("hello.service was restarted")
	}
}
