package nodeinit_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/nodeinit"
)

var update = flag.Bool("update", false, "rewrite goldens")

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// binaries are the ways in which an agent arrives.
var binaries = map[string]nodeinit.Binary{
	"path":  {Path: "/opt/bin/berth"},
	"url":   {URL: "https://files.example.com/v1.2.3/berth%20amd64?sig=a%2Bb$c", SHA256: digest},
	"image": {Image: "registry.example.com/berth:v1.2.3@sha256:" + digest, PathInImage: "/usr/bin/berth"},
}

func sample(t testing.TB, binary string) nodeinit.Data {
	t.Helper()
	return nodeinit.Data{
		ClusterCA:      read(t, "ca.crt"),
		BootstrapToken: nodeinit.BootstrapTokenPlaceholder,
		MachineName:    nodeinit.MachineNamePlaceholder,
		Version:        "v1.2.3",
		Configuration:  read(t, "configuration.yaml"),
		Binary:         binaries[binary],
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(read(t, name)), got); d != "" {
		t.Error(d)
	}
}

// shortest is what a provider's template for user data leaves room for in any case.
const shortest = 4096

func TestGolden(t *testing.T) {
	for name := range binaries {
		d := sample(t, name)
		for file, render := range map[string]func(nodeinit.Data) (string, error){
			name + ".cloud-config.yaml": nodeinit.CloudConfig, name + ".ignition.json": nodeinit.Ignition,
		} {
			text, err := render(d)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, text)
			if len(text) >= shortest {
				t.Errorf("%s has %d bytes", file, len(text))
			}
			again, err := render(d)
			if err != nil || again != text {
				t.Errorf("%s: the same data gave other bytes (%v)", file, err)
			}
		}
	}
}

// written are path and content of the files that a document writes, the unit included, and their modes.
type written struct {
	content map[string]string
	mode    map[string]string
}

func fromCloudConfig(t testing.TB, text string) written {
	t.Helper()
	var c struct {
		WriteFiles []struct{ Path, Permissions, Content string } `json:"write_files"`
	}
	if !strings.HasPrefix(text, "#cloud-config\n") {
		t.Fatalf("begins with %.20q", text)
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	w := written{map[string]string{}, map[string]string{}}
	for _, f := range c.WriteFiles {
		w.content[f.Path], w.mode[f.Path] = f.Content, f.Permissions
	}
	return w
}

func fromIgnition(t testing.TB, text string) written {
	t.Helper()
	var c struct {
		Storage struct {
			Files []struct {
				Path     string
				Mode     int
				Contents struct{ Source string }
			}
		}
		Systemd struct {
			Units []struct{ Name, Contents string }
		}
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	w := written{map[string]string{}, map[string]string{}}
	for _, f := range c.Storage.Files {
		w.content[f.Path] = source(t, f.Contents.Source)
		if w.mode[f.Path] = "0600"; f.Mode != 0o600 {
			t.Errorf("%s has mode %o", f.Path, f.Mode)
		}
	}
	for _, u := range c.Systemd.Units {
		path := "/etc/systemd/system/" + u.Name
		w.content[path], w.mode[path] = u.Contents, "0644"
	}
	return w
}

// source reads a data URL.
func source(t testing.TB, text string) string {
	t.Helper()
	if b, found := strings.CutPrefix(text, "data:;base64,"); found {
		out, err := base64.StdEncoding.DecodeString(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	plain, found := strings.CutPrefix(text, "data:,")
	out, err := url.PathUnescape(plain)
	if !found || err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	return out
}

// What both documents write is the same, and is what the agent looks for.
func TestFiles(t *testing.T) {
	d := sample(t, "url")
	d.BootstrapToken, d.MachineName, d.Options = "123456.0123456789012345", "1e5", []byte("group: example.com:pool-a\n")
	cloud, err := nodeinit.CloudConfig(d)
	if err != nil {
		t.Fatal(err)
	}
	ignition, err := nodeinit.Ignition(d)
	if err != nil {
		t.Fatal(err)
	}
	got := fromCloudConfig(t, cloud)
	if d := cmp.Diff(got, fromIgnition(t, ignition), cmp.AllowUnexported(written{})); d != "" {
		t.Error(d)
	}
	unit := got.content["/etc/systemd/system/"+nodeinit.Unit]
	delete(got.content, "/etc/systemd/system/"+nodeinit.Unit)
	want := map[string]string{
		"/var/lib/gardener-node-agent/cluster-ca.crt":              string(d.ClusterCA),
		"/var/lib/gardener-node-agent/credentials/bootstrap-token": "123456.0123456789012345",
		"/var/lib/gardener-node-agent/machine-name":                "1e5",
		"/var/lib/gardener-node-agent/config-v1.2.3.yaml":          string(d.Configuration),
		"/etc/berth/agent.yaml":                                    "group: example.com:pool-a\n",
	}
	if d := cmp.Diff(want, got.content); d != "" {
		t.Error(d)
	}
	for path := range want {
		if got.mode[path] != "0600" {
			t.Errorf("%s has mode %s", path, got.mode[path])
		}
	}
	if !strings.Contains(unit, "berth%%20amd64?sig=a%%2Bb$$c\n") {
		t.Errorf("systemd would read another URL:\n%s", unit)
	}
}

// The agent answers the name of its file.
func TestBootstrapCommand(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/berth":               "ExecStart=/usr/bin/berth agent bootstrap --config-dir=/var/lib/gardener-node-agent\n",
		"/opt/bin/gardener-node-agent": "ExecStart=/opt/bin/gardener-node-agent bootstrap --config-dir=/var/lib/gardener-node-agent\n",
	} {
		d := sample(t, "path")
		d.Binary.Path = path
		text, err := nodeinit.CloudConfig(d)
		if err != nil {
			t.Fatal(err)
		}
		unit := fromCloudConfig(t, text).content["/etc/systemd/system/"+nodeinit.Unit]
		if !strings.Contains(unit, want) || strings.Contains(unit, "ExecStartPre") {
			t.Errorf("%s:\n%s", path, unit)
		}
	}
}

// A machine controller replaces the placeholders in the text.
func TestPlaceholders(t *testing.T) {
	for name, render := range map[string]func(nodeinit.Data) (string, error){"cloud-config": nodeinit.CloudConfig, "ignition": nodeinit.Ignition} {
		text, err := render(sample(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer(nodeinit.BootstrapTokenPlaceholder, "abcdef.0123456789abcdef", nodeinit.MachineNamePlaceholder, "machine-1").Replace(text)
		d := sample(t, "path")
		d.BootstrapToken, d.MachineName = "abcdef.0123456789abcdef", "machine-1"
		want, err := render(d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, filled); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
