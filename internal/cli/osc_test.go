package cli

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

const oscHead = "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\n"

// An OperatingSystemConfig is taken as any other document is, and what it no longer
// has goes; so below a root directory, where nothing is started.
func TestOperatingSystemConfig(t *testing.T) {
	full, less := path.Join(t.TempDir(), "full.yaml"), path.Join(t.TempDir(), "less.yaml")
	write(t, full, oscHead+`spec:
  units:
  - {name: a.service, content: "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n", filePaths: [/etc/a]}
  files:
  - {path: /etc/a, permissions: 416, content: {inline: {data: hunter2}}}
`)
	write(t, less, oscHead)
	for _, root := range []string{"", "/mnt"} {
		t.Run("root "+root, func(t *testing.T) { followed(t, root, full, less) })
	}
}

func followed(t *testing.T, root, full, less string) {
	h := memory.New()
	h.Put("/bin/a", "", 0o755)
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"render -f " + full, 0, `"owner": "osc"`},
		{"plan -f " + full, exitcode.Pending, "create file:/etc/a: absent"},
		{"apply -f " + full, 0, "applied"},
		{"plan -f " + full, 0, "no changes"},
		{"plan -f " + less, exitcode.Pending, "delete"},
		{"apply -f " + less, 0, "applied"},
		{"plan -f " + less, 0, "no changes"},
	} {
		args := append([]string{"berth"}, strings.Fields(step.args)...)
		if root != "" {
			args = append(args, "--root", root)
		}
		code, stdout, stderr := invoke(h, args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s: code %d\n%s%s", step.args, code, stdout, stderr)
		}
		if step.args == "apply -f "+full {
			linked, err := h.Readlink("/etc/systemd/system/multi-user.target.wants/a.service")
			if data, _ := h.ReadFile("/etc/a"); string(data) != "hunter2" || !strings.HasSuffix(linked, "a.service") {
				t.Errorf("/etc/a is %q, the unit's link %q, %v", data, linked, err)
			}
		}
	}
	for _, p := range []string{"/etc/a", "/etc/systemd/system/a.service"} {
		if _, err := h.Lstat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	if root != "" && len(h.Jobs()) > 0 {
		t.Errorf("jobs of the machine beside its root: %v", h.Jobs())
	}
}

// Where berth's agent is a service of the machine a person's document leaves it alone,
// as the agent does; another agent is the document's.
func TestOperatingSystemConfigBesideTheAgent(t *testing.T) {
	document := path.Join(t.TempDir(), "osc.yaml")
	write(t, document, oscHead+`spec:
  units:
  - {name: gardener-node-agent.service, content: "[Service]\nExecStart=/opt/bin/gardener-node-agent\n", filePaths: [/opt/bin/gardener-node-agent]}
  files:
  - {path: /opt/bin/gardener-node-agent, permissions: 493, content: {inline: {data: other}}}
  - {path: /etc/a, content: {inline: {data: x}}}
`)
	kept, foreign := memory.New(), memory.New()
	st, err := agent.Setup(kept, &ledger.Reader{}, "/opt/bin/gardener-node-agent", "/etc/na")
	if err != nil {
		t.Fatal(err)
	}
	kept.Put("/opt/bin/gardener-node-agent", "berth", 0o755)
	if _, err := converge.New(converge.Options{Host: kept}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	foreign.Put("/etc/systemd/system/gardener-node-agent.service", "[Service]\nExecStart=/opt/bin/gardener-node-agent\n", 0o644)
	for _, c := range []struct {
		host    *memory.Host
		program string
	}{{kept, "berth"}, {foreign, "other"}} {
		code, stdout, stderr := invoke(c.host, "berth", "apply", "-f", document, "--take-over")
		program, err := c.host.ReadFile("/opt/bin/gardener-node-agent")
		if code != 0 || err != nil || string(program) != c.program {
			t.Errorf("code %d, %v: %s\n%s%s", code, err, program, stdout, stderr)
		}
		if _, err := c.host.Lstat("/etc/a"); err != nil {
			t.Error(err)
		}
	}
	text, err := kept.ReadFile("/etc/systemd/system/gardener-node-agent.service")
	if err != nil || !strings.Contains(string(text), "berth's node agent") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestOperatingSystemConfigIsRefused(t *testing.T) {
	bad, absent := path.Join(t.TempDir(), "bad.yaml"), path.Join(t.TempDir(), "absent.yaml")
	write(t, bad, oscHead+"spec: {files: [{path: /proc/a, content: {inline: {data: x}}}]}")
	write(t, absent, oscHead+"spec: {files: [{path: /a, content: {secretRef: {name: s, dataKey: k}}}]}")
	for args, want := range map[string]struct {
		code  int
		field string
	}{
		"render -f " + bad:                              {exitcode.Refused, "field: spec.files[0].path"},
		"plan -f " + absent:                             {exitcode.Refused, "field: spec.files[0].content.secretRef"},
		"apply -f " + absent:                            {exitcode.Refused, "field: spec.files[0].content.secretRef"},
		"provision --dry-run --provision-config " + bad: {exitcode.Internal, "spec.files[0].path"},
	} {
		code, _, stderr := invoke(memory.New(), append([]string{"berth"}, strings.Fields(args)...)...)
		if code != want.code || !strings.Contains(stderr, want.field) {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
}

// provision makes nodes of one contract.
func TestProvisionTakesNoOperatingSystemConfig(t *testing.T) {
	const p = "/config.yaml"
	h := memory.New()
	h.Put(p, oscHead, 0o600)
	local := path.Join(t.TempDir(), "osc.yaml")
	write(t, local, oscHead)
	for _, args := range [][]string{{"--dry-run", "--provision-config", local}, {"--provision-config", p}} {
		code, _, stderr := invoke(h, append([]string{"berth", "provision"}, args...)...)
		if code != exitcode.Internal || !strings.Contains(stderr, "provisioning takes an aksnodeconfig.v1") {
			t.Errorf("%v: code %d: %s", args, code, stderr)
		}
	}
	if b, err := h.ReadFile(report.ResultPath); err != nil || !strings.Contains(string(b), "OperatingSystemConfig") {
		t.Errorf("%s, %v", b, err)
	}
}

// A configuration of containerd that others wrote comes back to the byte.
func TestOperatingSystemConfigOfContainerd(t *testing.T) {
	const theirs = "# theirs\nversion = 2\n[plugins]\n"
	document, less := path.Join(t.TempDir(), "cri.yaml"), path.Join(t.TempDir(), "less.yaml")
	write(t, document, oscHead+"spec: {criConfig: {name: containerd, containerd: {sandboxImage: pause, registries: [{upstream: docker.io}]}}}")
	write(t, less, oscHead)
	for _, before := range []string{theirs, ""} {
		h := memory.New()
		h.Put("/usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n", 0o644)
		h.Put("/usr/bin/containerd", "", 0o755)
		h.PutDir("/etc/containerd")
		if before != "" {
			h.Put("/etc/containerd/config.toml", before, 0o644)
		}
		tree := h.Tree("/etc")
		for _, step := range []struct {
			args string
			want string
		}{{"apply -f " + document, "applied"}, {"plan -f " + document, "no changes"}, {"apply -f " + less, "applied"}, {"plan -f " + less, "no changes"}} {
			if code, stdout, stderr := invoke(h, append([]string{"berth"}, strings.Fields(step.args)...)...); code != 0 || !strings.Contains(stdout+stderr, step.want) {
				t.Fatalf("%s: code %d\n%s%s", step.args, code, stdout, stderr)
			}
		}
		if diff := cmp.Diff(tree, h.Tree("/etc")); diff != "" {
			t.Error(diff)
		}
	}
}

// What a machine has in the way of a document is found before anything is touched.
func TestOperatingSystemConfigInTheWay(t *testing.T) {
	document := path.Join(t.TempDir(), "osc.yaml")
	write(t, document, oscHead+"spec: {files: [{path: /etc/a, content: {inline: {data: x}}}, {path: /etc/b/c, content: {inline: {data: x}}}]}")
	for name, c := range map[string]struct {
		arrange func(h *memory.Host) error
		want    string
	}{
		"a directory with files": {func(h *memory.Host) error { h.Put("/etc/a/theirs", "x", 0o644); return nil }, "field: spec.files[0]"},
		"a user's link": {func(h *memory.Host) error {
			h.PutDir("/home")
			return errors.Join(h.Symlink("/home", "/etc/b"), h.Chown("/etc/b", 1000, 1000))
		}, "file:/etc/b/c"},
		"a link into /proc": {func(h *memory.Host) error { return h.Symlink("/proc/sys", "/etc/b") }, "file:/etc/b/c"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.PutDir("/etc")
			if err := c.arrange(h); err != nil {
				t.Fatal(err)
			}
			before := h.Tree("/etc")
			code, _, stderr := invoke(h, "berth", "apply", "-f", document)
			if code != exitcode.Failed || !strings.Contains(stderr, c.want) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if diff := cmp.Diff(before, h.Tree("/etc")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
