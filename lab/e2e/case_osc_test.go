package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

const oscPath = "/root/osc.yaml"

// theirConfig is what a distribution's containerd may come with: no imports.
const theirConfig = "# theirs\nversion = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\n  bin_dir = \"/usr/lib/cni\"\n"

// TestCaseOperatingSystemConfig has a machine follow OperatingSystemConfigs: units,
// drop-ins, files, programs out of an image of a registry with a CA of its own, and
// containerd beside a configuration of others.
func TestCaseOperatingSystemConfig(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	for tag, word := range map[string]string{"v1": "one", "v2": "two"} {
		program := "#!/bin/sh\necho " + word + " > /run/word\nexec sleep infinity\n"
		push(t, reg, "node:"+tag, serve.Entry{Name: "bin/hello", Data: []byte(program)}, serve.Entry{Name: "bin/other", Data: []byte(program)})
	}
	m := serveMirror(t, l, reg)
	t.Run("machine", func(t *testing.T) {
		n := addNode(t, l, lab.NodeConfig{Name: "case-osc",
			Files: map[string]lab.File{"/etc/containerd/config.toml": {Content: []byte(theirConfig)}}})
		if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		followOSC(t, n, m)
	})
	t.Run("node", func(t *testing.T) {
		n := addNode(t, l, lab.NodeConfig{Name: "case-osc-node", UserData: customData(t, nodeConfig(t, l))})
		if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
			t.Fatal(err)
		}
		besideNode(t, n, m)
	})
}

func push(t *testing.T, reg *images, tag string, files ...serve.Entry) {
	t.Helper()
	if _, err := reg.Push(within(t, time.Minute), tag, serve.Image{Files: files}); err != nil {
		t.Fatal(err)
	}
}

// oscOf is a document with a service whose program comes out of an image.
func oscOf(m *mirror, tag string) *v1alpha1.OperatingSystemConfig {
	c := &v1alpha1.OperatingSystemConfig{}
	c.APIVersion, c.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	mode := func(m uint32) *uint32 { return &m }
	unit := "[Service]\nExecStart=/opt/osc/hello\n[Install]\nWantedBy=multi-user.target\n"
	c.Spec.Units = []v1alpha1.Unit{{Name: "hello.service", Content: &unit, FilePaths: []string{"/opt/osc/hello", "/etc/hello.conf"}}}
	c.Status.ExtensionUnits = []v1alpha1.Unit{{Name: "hello.service", DropIns: []v1alpha1.DropIn{{Name: "10-nice.conf", Content: "[Service]\nNice=5\n"}}}}
	inline := func(p, data string, m uint32) v1alpha1.File {
		return v1alpha1.File{Path: p, Permissions: mode(m), Content: v1alpha1.FileContent{Inline: &v1alpha1.FileContentInline{Data: data}}}
	}
	out := func(p, in string) v1alpha1.File {
		return v1alpha1.File{Path: p, Permissions: mode(0o755), Content: v1alpha1.FileContent{
			ImageRef: &v1alpha1.FileContentImageRef{Image: "registry.invalid/node:" + tag, FilePathInImage: in}}}
	}
	c.Spec.Files = []v1alpha1.File{
		inline("/etc/hello.conf", tag, 0o644), inline("/etc/hello.token", "S3CRET", 0o640), inline("/etc/hello-ca.pem", string(m.ca), 0o644),
		out("/opt/osc/hello", "/bin/hello"), out("/opt/osc/other", "/bin/other"),
	}
	c.Spec.CRIConfig = &v1alpha1.CRIConfig{Name: v1alpha1.CRINameContainerd, Containerd: &v1alpha1.ContainerdConfig{
		SandboxImage: "registry.invalid/pause:1",
		Registries: []v1alpha1.RegistryConfig{{Upstream: "registry.invalid",
			Hosts: []v1alpha1.RegistryHost{{URL: "https://" + m.server, CACerts: []string{"/etc/hello-ca.pem"}}}}},
		Plugins: []v1alpha1.PluginConfig{{Path: []string{"io.containerd.grpc.v1.cri", "containerd", "runtimes", "lab"},
			Values: json.RawMessage(`{"runtime_type":"io.containerd.lab.v1"}`)}},
	}}
	return c
}

// osc runs a command with a document and returns what it prints.
func osc(t *testing.T, n *lab.Node, c *v1alpha1.OperatingSystemConfig, code int, args ...string) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile(oscPath, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := n.Exec(within(t, time.Minute), append([]string{berthPath}, append(args, "-f", oscPath)...)...)
	if err != nil || r.Code != code {
		t.Fatalf("%v: %v, exit code %d\n%s%s", args, err, r.Code, r.Stdout, r.Stderr)
	}
	if said := string(r.Stdout) + string(r.Stderr); strings.Contains(said, "S3CRET") {
		t.Errorf("a secret shows: %s", said)
	}
	return string(r.Stdout) + string(r.Stderr)
}

func applyOSC(t *testing.T, n *lab.Node, c *v1alpha1.OperatingSystemConfig) {
	t.Helper()
	osc(t, n, c, 0, "apply")
	osc(t, n, c, 0, "plan")
}

// began tells which of the units have begun a run.
func began(t *testing.T, n *lab.Node, units ...string) []string {
	t.Helper()
	return strings.Fields(run(t, n, append([]string{"systemctl", "show", "-p", "InvocationID", "--value"}, units...)...))
}

// inPlace is what a document may change of a machine, with the modes.
func inPlace(t *testing.T, n *lab.Node) string {
	t.Helper()
	return run(t, n, "sh", "-c", "find /etc /opt -xdev \\( -type f -o -type l -o -type d \\) -printf '%p %y %m %l\\n' | sort; find /etc /opt -xdev -type f -exec sha256sum {} + | sort")
}

func followOSC(t *testing.T, n *lab.Node, m *mirror) {
	run(t, n, "systemctl", "start", "containerd") // which makes directories of its own
	before := inPlace(t, n)
	inRoot(t, n, m)
	osc(t, n, oscOf(m, "v1"), 2, "plan")
	if diff := cmp.Diff(before, inPlace(t, n)); diff != "" {
		t.Errorf("a plan changes: %s", diff)
	}
	applyOSC(t, n, oscOf(m, "v1"))
	if got := run(t, n, "sh", "-c", "cat /run/word; systemctl show -p Nice --value hello; stat -c %a /etc/hello.token"); got != "one\n5\n640\n" {
		t.Errorf("after the first: %q", got)
	}
	inForce(t, n, "registry.invalid/pause:1", "io.containerd.lab.v1", "'/opt/cni/bin'", "/etc/containerd/certs.d")
	units := []string{"hello.service", "containerd.service"}
	was := began(t, n, units...)
	applyOSC(t, n, oscOf(m, "v2"))
	now := began(t, n, units...)
	if run(t, n, "cat", "/run/word") != "two\n" || was[0] == now[0] || was[1] != now[1] {
		t.Errorf("after the second: began %v, then %v", was, now)
	}
	run(t, n, "sh", "-c", "echo edited > /etc/hello.conf; echo edited > /opt/osc/hello; systemctl stop hello")
	applyOSC(t, n, oscOf(m, "v2"))
	if got := run(t, n, "cat", "/run/word", "/etc/hello.conf"); got != "two\nv2" {
		t.Errorf("repaired: %q", got)
	}
	bad := oscOf(m, "v1")
	bad.Spec.Files = append(bad.Spec.Files, v1alpha1.File{Path: "/proc/hello", Content: bad.Spec.Files[0].Content})
	if said := osc(t, n, bad, 3, "apply"); !strings.Contains(said, "spec.files[5].path") {
		t.Errorf("refused: %s", said)
	}
	cyclic(t, n)
	osc(t, n, oscOf(m, "v2"), 0, "plan")
	nothing := &v1alpha1.OperatingSystemConfig{TypeMeta: bad.TypeMeta}
	applyOSC(t, n, nothing)
	if diff := cmp.Diff(before, inPlace(t, n)); diff != "" {
		t.Errorf("left: %s", diff)
	}
	if got := run(t, n, "sh", "-c", "systemctl show -p LoadState -p ActiveState --value hello; systemctl is-active containerd"); got != "not-found\ninactive\nactive\n" {
		t.Errorf("withdrawn: %q", got)
	}
	if began(t, n, units...)[1] == now[1] {
		t.Error("containerd still runs with what is gone")
	}
	withoutState(t, n, m, before)
}

// inRoot: below a root directory files and links come, what a registry or the running machine
// is needed for waits, and nothing of the machine itself changes.
func inRoot(t *testing.T, n *lab.Node, m *mirror) {
	t.Helper()
	const root = "/srv/root"
	run(t, n, "sh", "-c", "mkdir -p "+root+"/usr/lib/systemd && cp -a /etc "+root+" && cp -a /usr/lib/systemd/system "+root+"/usr/lib/systemd && rm -rf "+root+"/etc/berth")
	if said := osc(t, n, oscOf(m, "v1"), 0, "render"); !strings.Contains(said, "/opt/osc/hello") {
		t.Errorf("render: %s", said)
	}
	if said := osc(t, n, oscOf(m, "v1"), 2, "plan", "--root", root); !containsAll(said, "/etc/hello.conf", "deferred") {
		t.Errorf("plan: %s", said)
	}
	osc(t, n, oscOf(m, "v1"), 0, "apply", "--root", root)
	if said := osc(t, n, oscOf(m, "v1"), 0, "plan", "--root", root); !strings.Contains(said, "no changes") {
		t.Errorf("a second plan: %s", said)
	}
	const look = "cd " + root + "/etc; cat hello.conf; stat -c ' %a' hello.token; ls systemd/system/hello.service.d; find systemd/system -lname '*hello.service' | wc -l; systemctl show -P LoadState hello.service"
	if got := run(t, n, "sh", "-c", look); got != "v1 640\n10-nice.conf\n1\nnot-found\n" {
		t.Errorf("below the root: %q", got)
	}
	osc(t, n, oscOf(m, "v1"), 0, "apply", "--root", root, "--fetch")
	if got := run(t, n, "sh", "-c", root+"/opt/osc/hello & sleep 0.2; kill $!; cat /run/word; rm /run/word"); got != "one\n" {
		t.Errorf("the program out of the image says %q", got)
	}
	run(t, n, "rm", "-r", root)
}

// withoutState: where all that berth keeps is lost, its files say themselves that they are
// berth's. They are no originals and go with their document; what somebody made of one of
// them comes back.
func withoutState(t *testing.T, n *lab.Node, m *mirror, before string) {
	t.Helper()
	c := &v1alpha1.OperatingSystemConfig{TypeMeta: oscOf(m, "").TypeMeta}
	c.Spec.Files = oscOf(m, "v1").Spec.Files[:3]
	applyOSC(t, n, c)
	run(t, n, "sh", "-c", "rm -r /var/lib/berth; echo edited > /etc/hello-ca.pem")
	applyOSC(t, n, c)
	c.Spec.Files[0].Content.Inline.Data = "another"
	applyOSC(t, n, c)
	c.Spec.Files = nil
	applyOSC(t, n, c)
	if got := run(t, n, "sh", "-c", "cat /etc/hello-ca.pem; rm /etc/hello-ca.pem"); got != "edited\n" {
		t.Errorf("without berth's state somebody's edit became %q", got)
	}
	if diff := cmp.Diff(before, inPlace(t, n)); diff != "" {
		t.Errorf("without berth's state left: %s", diff)
	}
}

// cyclic: what berth refuses systemd does not start.
func cyclic(t *testing.T, n *lab.Node) {
	t.Helper()
	c := &v1alpha1.OperatingSystemConfig{TypeMeta: oscOf(&mirror{}, "").TypeMeta}
	for name, other := range map[string]string{"ring-a.service": "ring-b.service", "ring-b.service": "ring-a.service"} {
		text := "[Unit]\nRequires=" + other + "\nAfter=" + other + "\n[Service]\nExecStart=/bin/sleep infinity\n"
		c.Spec.Units = append(c.Spec.Units, v1alpha1.Unit{Name: name, Content: &text})
		if err := n.WriteFile("/run/systemd/system/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if said := osc(t, n, c, 3, "apply"); !strings.Contains(said, "starts after the next") {
		t.Errorf("refused: %s", said)
	}
	run(t, n, "systemctl", "daemon-reload")
	r, err := n.Exec(within(t, time.Minute), "systemctl", "start", "ring-a.service")
	if err != nil || r.Code == 0 || !strings.Contains(string(r.Stderr), "cyclic") {
		t.Errorf("systemd: %v, exit code %d: %s", err, r.Code, r.Stderr)
	}
	run(t, n, "sh", "-c", "rm /run/systemd/system/ring-*.service && systemctl daemon-reload")
}

// inForce says what containerd makes of its files.
func inForce(t *testing.T, n *lab.Node, want ...string) {
	t.Helper()
	text := run(t, n, "containerd", "config", "dump")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("containerd knows nothing of %s:\n%s", w, text)
		}
	}
	if got := run(t, n, "systemctl", "show", "-p", "NeedDaemonReload", "--value", "containerd"); got != "no\n" {
		t.Errorf("NeedDaemonReload: %q", got)
	}
}

// besideNode: a document beside the one that made the machine a node disturbs
// nothing that this one asks for.
func besideNode(t *testing.T, n *lab.Node, m *mirror) {
	planIsEmpty(t, nil, n)
	units := []string{"kubelet.service", "containerd.service"}
	was := began(t, n, units...)
	c := oscOf(m, "v1")
	c.Spec.CRIConfig = nil
	c.Spec.Files = append(c.Spec.Files, v1alpha1.File{Path: "/etc/containerd/certs.d/registry.invalid/hosts.toml", Content: v1alpha1.FileContent{
		Inline: &v1alpha1.FileContentInline{Data: fmt.Sprintf("[host.\"https://%s\"]\n  ca = \"/etc/hello-ca.pem\"\n", m.server)}}})
	applyOSC(t, n, c)
	planIsEmpty(t, nil, n)
	if diff := cmp.Diff(was, began(t, n, units...)); diff != "" {
		t.Errorf("started anew: %s", diff)
	}
	applyOSC(t, n, oscOf(m, "v1"))
	inForce(t, n, "registry.invalid/pause:1", "io.containerd.lab.v1")
	planIsEmpty(t, nil, n)
	applyOSC(t, n, &v1alpha1.OperatingSystemConfig{TypeMeta: c.TypeMeta})
	planIsEmpty(t, nil, n)
	if now := began(t, n, units...); now[0] != was[0] {
		t.Error("kubelet started anew")
	}
}
