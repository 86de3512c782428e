package config

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const smallest = `apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://10.0.0.1:6443", caFile: /var/lib/gardener-node-agent/cluster-ca.crt}
controllers:
  operatingSystemConfig: {secretName: gardener-node-agent-pool-0123456789abcdef, kubernetesVersion: 1.34.2}
`

func TestDefaults(t *testing.T) {
	c, notes, err := Parse("config.yaml", []byte(smallest))
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	got, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		field    string
	}{
		"no kind":           {"kind: NodeAgentConfiguration", "kind: Pod", "kind"},
		"another version":   {"v1alpha1", "v9", "apiVersion"},
		"http":              {"https://", "http://", "apiServer.server"},
		"no CA":             {"caFile: /var/lib/gardener-node-agent/cluster-ca.crt", "", "apiServer.caFile"},
		"a kernel path":     {"/var/lib/gardener-node-agent/cluster-ca.crt", "/proc/1/environ", "apiServer.caFile"},
		"no secret":         {"secretName: gardener-node-agent-pool-0123456789abcdef, ", "", "controllers.operatingSystemConfig.secretName"},
		"no name":           {"gardener-node-agent-pool-0123456789abcdef", "../x", "controllers.operatingSystemConfig.secretName"},
		"no version":        {", kubernetesVersion: 1.34.2", "", "controllers.operatingSystemConfig.kubernetesVersion"},
		"half a version":    {"1.34.2", "one", "controllers.operatingSystemConfig.kubernetesVersion"},
		"too often":         {"{secretName: g", "{syncPeriod: 14s, secretName: g", "controllers.operatingSystemConfig.syncPeriod"},
		"tokens too often":  {"controllers:", "controllers:\n  token: {syncPeriod: 1s}", "controllers.token.syncPeriod"},
		"token twice":       {"controllers:", "controllers:\n  token: {syncConfigs: [{secretName: a, path: /x}, {secretName: b, path: /x}]}", "controllers.token.syncConfigs[1].path"},
		"token of nothing":  {"controllers:", "controllers:\n  token: {syncConfigs: [{path: /x}]}", "controllers.token.syncConfigs[0].secretName"},
		"token nowhere":     {"controllers:", "controllers:\n  token: {syncConfigs: [{secretName: a}]}", "controllers.token.syncConfigs[0].path"},
		"units too often":   {"controllers:", "controllers:\n  systemdUnitCheck: {syncPeriod: 14s}", "controllers.systemdUnitCheck.syncPeriod"},
		"stuck at once":     {"controllers:", "controllers:\n  systemdUnitCheck: {stuckThreshold: 29s}", "controllers.systemdUnitCheck.stuckThreshold"},
		"log level":         {"kind: N", "logLevel: loud\nkind: N", "logLevel"},
		"log format":        {"kind: N", "logFormat: xml\nkind: N", "logFormat"},
		"port":              {"kind: N", "server: {metrics: {port: 70000}}\nkind: N", "server.metrics.port"},
		"address":           {"kind: N", "server: {healthProbes: {bindAddress: here}}\nkind: N", "server.healthProbes.bindAddress"},
		"kubeconfig":        {"kind: N", "clientConnection: {kubeconfig: here}\nkind: N", "clientConnection.kubeconfig"},
		"wrong type":        {"kind: N", "server: 7\nkind: N", ""},
		"not even a map":    {smallest, "[]", ""},
		"duration of cats":  {"{secretName: g", "{syncPeriod: cats, secretName: g", ""},
		"nothing in it":     {smallest, "", "apiVersion"},
		"binary":            {smallest, "\x00\x01", ""},
		"anchors of a bomb": {smallest, "a: &a [x]\nb: *c\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse("config-v1.yaml", []byte(strings.Replace(smallest, c.from, c.to, 1)))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("taken: %v", err)
			}
			if !strings.Contains(e.Error(), "config-v1.yaml") {
				t.Errorf("it does not name the file: %v", e)
			}
			for _, f := range e.List() {
				if f.Field == c.field || c.field == "" {
					return
				}
			}
			t.Errorf("%s is not among %v", c.field, e.List())
		})
	}
}

func TestUnknownFieldsAreNoted(t *testing.T) {
	_, notes, err := Parse("c", []byte(smallest+"newer: {thing: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`unknown field "newer"`}, notes); d != "" {
		t.Error(d)
	}
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"own":         {[]string{"config-v1.2.3.yaml", "config-v9.0.0.yaml"}, "config-v1.2.3.yaml"},
		"newest":      {[]string{"config-v1.9.0.yaml", "config-v1.10.0.yaml", "config-v1.10.0-rc1.yaml"}, "config-v1.10.0.yaml"},
		"odd":         {[]string{"config-dev.yaml", "config-v0.1.0.yaml", "config.yaml", "x-config-v7.0.0.yaml"}, "config-v0.1.0.yaml"},
		"only odd":    {[]string{"config-a.yaml", "config-b.yaml"}, "config-b.yaml"},
		"none":        {[]string{"config.yaml", "config-.yaml"}, ""},
		"none at all": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			mkdir(t, h, BaseDir)
			for _, f := range c.files {
				write(t, h, BaseDir+"/"+f, "x")
			}
			got, err := Find(h, BaseDir, "v1.2.3")
			if (err != nil) != (c.want == "") || c.want != "" && got != BaseDir+"/"+c.want {
				t.Errorf("%q, %v; want %s", got, err, c.want)
			}
		})
	}
	h := memory.New()
	write(t, h, "/file", "x")
	for _, dir := range []string{"/nowhere", "/file"} {
		_, err := Find(h, dir, "v1")
		if told, ok := errors.AsType[*exitcode.Error](err); !ok || !strings.Contains(told.Remedy, "--config-dir") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestRead(t *testing.T) {
	h := memory.New()
	if _, _, err := Read(h, "/c.yaml"); err == nil {
		t.Error("read what is not there")
	}
	write(t, h, "/c.yaml", smallest)
	c, _, err := Read(h, "/c.yaml")
	if err != nil || c.Controllers.OperatingSystemConfig.SyncPeriod.Duration != 10*time.Minute {
		t.Error(c, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest))
	f.Add([]byte("controllers: {token: {syncConfigs: [{}]}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _, err := Parse("c", b)
		if (c == nil) == (err == nil) {
			t.Fatal(c, err)
		}
		if err != nil {
			return
		}
		again, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := Parse("c", again)
		if err != nil {
			t.Fatalf("what was printed is refused: %v", err)
		}
		if diff := cmp.Diff(c, d); diff != "" {
			t.Error(diff)
		}
	})
}

func mkdir(t *testing.T, h host.FS, dir string) {
	t.Helper()
	if _, err := host.MkdirAll(h, dir); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, h host.FS, p, text string) {
	t.Helper()
	if err := host.WriteFile(h, p, []byte(text), host.Attributes{Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
}
