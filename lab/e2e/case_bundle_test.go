package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// nowhere is a registry that does not exist.
const nowhere = "registry.nowhere.test"

// TestCaseBundle provisions a bare image at a site without network: programs,
// sandbox image and workload come out of one signed file on the disk; every
// address in the configuration leads nowhere.
func TestCaseBundle(t *testing.T) {
	l := sharedLab(t)
	dir := t.TempDir()
	progs := servePrograms(t, l)
	cfg := nodeConfig(t, l, progs.configure, func(c *aksnodeconfigv1.Configuration) {
		for _, url := range []*string{&c.KubeBinaryConfig.CustomKubeBinaryUrl, &c.ContainerdConfig.ContainerdPackageUrl, &c.RuncConfig.RuncPackageUrl, &c.NetworkConfig.CniPluginsUrl} {
			*url = "https://files.nowhere.test" + (*url)[strings.LastIndexByte(*url, '/'):]
		}
		c.KubeBinaryConfig.PodInfraContainerImageUrl = nowhere + "/pause:1"
	})
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, document(t, cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bundler{dir: dir, berth: buildBerth(t)}
	b.keys(t)
	b.run(t, 0, "create", "-f", config, "-o", "site.bundle", "--key", "site.key",
		"--artifact", "kubernetes="+progs.source(progs.kubernetes), "--artifact", "containerd="+progs.source(progs.containerd),
		"--artifact", "runc="+progs.source(progs.runc), "--artifact", "cni-plugins="+progs.source(progs.cni),
		"--image", nowhere+"/pause:1="+l.PauseArchive(), "--image", importedImage+"="+importLayout(t, l))
	b.run(t, 0, "verify", "site.bundle", "--key", "site.pem")
	site, err := os.ReadFile(filepath.Join(dir, "site.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "site.pem"))
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "case-bundle", Flavour: lab.Bare, UserData: customData(t, cfg), Files: map[string]lab.File{
		"/var/lib/berth/bundles/site.bundle": {Content: site, Mode: 0o600}, "/etc/berth/keys.d/site.pem": {Content: key},
	}})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	runImported(t, l, n)
	planIsEmpty(t, l, n)
	if r := progs.Requests(); len(r) > 0 {
		t.Errorf("requests: %v", r)
	}
	logFetching(t, n)
}

// bundler runs berth bundle.
type bundler struct{ dir, berth string }

func (b *bundler) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t, 2*time.Minute), b.berth, append([]string{"bundle"}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("bundle %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys makes a pair as docs/bundle.md says.
func (b *bundler) keys(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"genpkey", "-algorithm", "ed25519", "-out", "site.key"},
		{"pkey", "-in", "site.key", "-pubout", "-out", "site.pem"},
	} {
		cmd := exec.CommandContext(within(t, 10*time.Second), "openssl", args...)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl: %v\n%s", err, out)
		}
	}
}

// buildBerth builds the program for this machine.
func buildBerth(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "berth")
	build := exec.CommandContext(within(t, 3*time.Minute), "go", "build", "-o", program, "./cmd/berth")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	return program
}

// span is a line of the timeline.
type span struct {
	ID, Verb, Phase, Detail string
	Start, End              time.Time
	Bytes                   int64
}

// logFetching says how long a node's run waited for bytes alone.
func logFetching(t *testing.T, n *lab.Node) {
	t.Helper()
	var line struct {
		Start, End time.Time
		Spans      []span
	}
	if err := json.Unmarshal([]byte(run(t, n, berthPath, "timeline", "-o", "json")), &line); err != nil {
		t.Fatal(err)
	}
	var fetched, others time.Time
	var bytes int64
	for _, s := range line.Spans {
		switch {
		case s.Phase != "stage":
		case s.Verb == "fetch":
			fetched = later(fetched, s.End)
			bytes += s.Bytes
			if s.Bytes == 0 || s.Detail == "" {
				t.Errorf("%s: no bytes in the timeline", s.ID)
			}
		default:
			others = later(others, s.End)
		}
	}
	whole := line.End.Sub(line.Start)
	t.Logf("%s: %.0f MB; of %.2f s, %.2f s were waiting for bytes alone", n.Name, float64(bytes)/1e6, whole.Seconds(), max(0, fetched.Sub(others)).Seconds())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
