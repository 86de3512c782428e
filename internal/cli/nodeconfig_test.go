package cli

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

const ownDocument = "../contract/node/testdata/minimal.yaml"

// ownMachine has what the document names and the programs that can't be fetched, but
// no token: nobody needs it here.
func ownMachine(t *testing.T) *memory.Host {
	t.Helper()
	ca, err := os.ReadFile("../contract/node/testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.Put("/etc/berth/ca.pem", string(ca), 0o644)
	return h
}

// A NodeConfig takes the same way as every other document, and a second run finds
// nothing to do.
func TestNodeConfig(t *testing.T) {
	h := ownMachine(t)
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"render", 0, `"owner": "node"`, ""},
		{"plan", exitcode.Pending, "create file:/etc/default/kubelet", ""},
		{"apply", 0, "", "applied"},
		{"plan", 0, "no changes", ""},
	} {
		code, stdout, stderr := invoke(h, "berth", c.args, "-f", ownDocument, "--root", "/mnt")
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d: %s%s", c.args, code, stdout, stderr)
		}
	}
}

func TestNodeConfigIsRefused(t *testing.T) {
	code, _, stderr := invoke(memory.New(), "berth", "plan", "-f", ownDocument, "--root", "/mnt")
	if code != exitcode.Refused || !strings.Contains(stderr, "line 3: cluster.caFile: Not found") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestConfigCommands(t *testing.T) {
	flex := path.Join(t.TempDir(), "flex.json")
	write(t, flex, `{"azure": {"targetCluster": {"resourceId": "/x"}, "bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, "npd": {"version": "v1"}}`)
	const join = "kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef \\\n\t--discovery-token-ca-cert-hash sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"view":             {[]string{"config", "view", "-f", ownDocument}, 0, "maxPods: 110", ""},
		"view of another":  {[]string{"config", "view", "-f", sample}, exitcode.Refused, "", "no such field"},
		"view in a format": {[]string{"config", "view", "-f", ownDocument, "-o", "xml"}, exitcode.Failed, "", "must be"},
		"from kubeadm":     {[]string{"config", "from-kubeadm", join, "--kubernetes-version", "1.36.3"}, 0, "tokenFile: /etc/berth/token", "put the token into /etc/berth/token"},
		"from kubeadm, in": {[]string{"config", "from-kubeadm", join, "--kubernetes-version", "1.36.3", "--inline-secrets"}, 0, "allowInline: true", ""},
		"no version":       {[]string{"config", "from-kubeadm", join}, exitcode.Failed, "", "--kubernetes-version"},
		"no command line":  {[]string{"config", "from-kubeadm", "--kubernetes-version", "1.36.3"}, exitcode.Failed, "", "in quotes"},
		"odd command line": {[]string{"config", "from-kubeadm", "kubeadm init", "--kubernetes-version", "1.36.3"}, exitcode.Refused, "", "one token"},
		"migrate":          {[]string{"config", "migrate", "-f", flex, "--secrets", "/run/s"}, 0, "tokenFile: /run/s/token", "npd.version: it has no place"},
		"migrate nothing":  {[]string{"config", "migrate"}, exitcode.Failed, "", "-f FILE is missing"},
		"migrate a pod":    {[]string{"config", "migrate", "-f", ownDocument}, exitcode.Refused, "", "invalid character"},
		"schema":           {[]string{"schema"}, 0, `"title": "NodeConfig"`, ""},
	} {
		code, stdout, stderr := invoke(memory.New(), append([]string{"berth"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d: %s%s", name, code, stdout, stderr)
		}
		if name == "schema" && !json.Valid([]byte(stdout)) {
			t.Error("the schema is no JSON")
		}
	}
}
