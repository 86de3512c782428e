package nodeconfigutils_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// machine runs the boothook as cloud-init does, with its directories moved below a temporary one
// and a systemctl that writes down how it is called.
type machine struct {
	t    *testing.T
	root string
	hook string
}

func newMachine(t *testing.T) machine {
	data, err := nodeconfigutils.CustomData(sample(t, "full"))
	hook := parts(t, decoded(t, data, err))["text/cloud-boothook"]
	m := machine{t: t, root: t.TempDir()}
	hook = strings.TrimPrefix(hook, "#cloud-boothook\n")
	hook = strings.ReplaceAll(hook, "/opt/azure", m.root+"/opt/azure")
	m.hook = m.put("part-001", hook)
	m.put("bin/systemctl", "#!/bin/sh\necho \"$@\" >>"+m.root+"/calls\n")
	return m
}

func (m machine) put(name, text string) string {
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m machine) boot(instance string) {
	m.t.Helper()
	cmd := exec.Command(m.hook)
	cmd.Env = []string{"PATH=" + m.root + "/bin:/usr/bin:/bin", "INSTANCE_ID=" + instance}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		m.t.Fatalf("boothook: %v\n%s", err, out)
	}
}

func (m machine) config() string { return m.root + nodeconfigutils.ConfigPath }

func (m machine) read(path string) string {
	m.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func TestBoothookIsShell(t *testing.T) {
	m := newMachine(t)
	if out, err := exec.Command("sh", "-n", m.hook).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestBoothookWritesOncePerInstance(t *testing.T) {
	m := newMachine(t)
	want, err := nodeconfigutils.Marshal(sample(t, "full"))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name, instance string
		before         string // what the file holds before the boot; "" leaves it
		want           string
	}{
		{"first boot", "i-1", "", string(want)},
		{"reboot", "i-1", "edited", "edited"},
		{"captured image", "i-2", "", string(want)},
		{"reboot of that", "i-2", "edited", "edited"},
		{"power cut left it empty", "i-2", "\x00empty", string(want)},
	}
	for _, s := range steps {
		switch s.before {
		case "":
		case "\x00empty":
			m.put(strings.TrimPrefix(m.config(), m.root), "")
		default:
			m.put(strings.TrimPrefix(m.config(), m.root), s.before)
		}
		m.boot(s.instance)
		if got := m.read(m.config()); got != s.want {
			t.Errorf("%s: config is %.40q", s.name, got)
		}
	}
	if got, want := m.read(m.root+"/calls"), strings.Repeat("start --no-block aks-node-controller.service\n", len(steps)); got != want {
		t.Errorf("systemctl: %s", got)
	}
}

func TestBoothookModes(t *testing.T) {
	m := newMachine(t)
	m.boot("i-1")
	for path, want := range map[string]os.FileMode{
		m.config():                  0o600,
		m.config() + ".instance-id": 0o600,
		filepath.Dir(m.config()):    0o755,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	if left, _ := filepath.Glob(m.config() + ".new"); len(left) > 0 {
		t.Error("temporary file left")
	}
}
