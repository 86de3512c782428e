package cli

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/doctor"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

// nowhere is a document of a machine whose cluster and downloads nobody serves.
const nowhere = `apiVersion: berth.dev/v1alpha1
kind: NodeConfig
cluster: {server: "https://127.0.0.1:1", caFile: /ca.pem}
identity: {bootstrapToken: {tokenFile: /token}}
components:
  kubernetes: {version: 1.36.3, urls: ["https://127.0.0.1:1/kubernetes"]}
  containerd: {version: 2.2.9, urls: ["https://127.0.0.1:1/containerd"]}
  runc: {version: 1.4.3, urls: ["https://127.0.0.1:1/runc"]}
  cni: {version: 1.9.1, urls: ["https://127.0.0.1:1/cni"]}
`

func TestPreflight(t *testing.T) {
	file := path.Join(t.TempDir(), "node.yaml")
	write(t, file, nowhere)
	h := memory.New()
	code, stdout, stderr := invoke(h, "berth", "preflight", "-f", file, "-o", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitcode.Failed || r.Status != doctor.StatusFailed {
		t.Fatalf("code %d, %v: %s%s", code, err, stdout, stderr)
	}
	for _, c := range r.Checks {
		switch c.Name {
		case "document":
			if c.Status != doctor.Error || c.Field != "cluster.caFile" || c.Remedy == "" {
				t.Errorf("%+v", c)
			}
		case "api-server":
			if c.Status != doctor.Error || !strings.Contains(c.Finding, "127.0.0.1:1") {
				t.Errorf("%+v", c)
			}
		}
	}
	if code, stdout, _ = invoke(h, "berth", "preflight", "-f", file, "--ignore", "all"); code != 0 || !strings.Contains(stdout, "ignored  document") {
		t.Errorf("code %d: %s", code, stdout)
	}
}

// TestPublishedPreflight: the published name has its own flags, names and shape.
func TestPublishedPreflight(t *testing.T) {
	file := path.Join(t.TempDir(), "config.json")
	write(t, file, `{"azure": {"targetCluster": {"resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one",
"location": "westeurope"}, "bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, "kubernetes": {"version": "1.36.3"},
"node": {"kubelet": {"serverURL": "https://127.0.0.1:1", "caCertData": "Q0E="}}, "npd": {"version": "v1"}}`)
	for args, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"--config " + file + " --output json":       {3, "", "cluster.ca"},
		"--output json":                             {1, "", "--config FILE is missing"},
		"--config x --output yaml":                  {1, "", "must be text or json"},
		"--config x --ignore-preflight-errors frob": {1, "", "there is no such check"},
	} {
		code, stdout, stderr := invoke(memory.New(), strings.Fields("aks-flex-node preflight "+args)...)
		if code != want.code || !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) {
			t.Errorf("%s: code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestDoctor(t *testing.T) {
	code, stdout, stderr := invoke(memory.New(), "berth", "doctor")
	if code != exitcode.Failed || !strings.Contains(stdout, "kubelet has no kubeconfig") || !strings.Contains(stdout, "first: it explains the most") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// TestExitCodeOfAReport: what a report makes of the exit code.
func TestExitCodeOfAReport(t *testing.T) {
	for name, c := range map[string]struct {
		summary doctor.Summary
		strict  bool
		want    int
	}{
		"well":                      {doctor.Summary{OK: 1, Unknown: 1}, true, 0},
		"a warning":                 {doctor.Summary{Warnings: 1}, false, 0},
		"a warning that counts":     {doctor.Summary{Warnings: 1}, true, exitcode.Warned},
		"an error":                  {doctor.Summary{Errors: 1}, false, exitcode.Failed},
		"an error beside a warning": {doctor.Summary{Errors: 1, Warnings: 1}, true, exitcode.Failed},
	} {
		var out strings.Builder
		e := &env{out: &out, err: &out}
		err := e.reportChecks(doctor.Report{Summary: c.summary}, checkFlags{output: "text", strict: c.strict})
		if got := e.exit(err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
