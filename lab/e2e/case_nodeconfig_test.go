package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/site"
)

// tokenPath is where the operator of a machine puts the bootstrap token.
const tokenPath = "/etc/berth/token"

// nodeSpecifics is what only nspawn nodes need.
const nodeSpecifics = `{"failCgroupV1": false, "failSwapOn": false, "maxOpenFiles": 20000, "oomScoreAdj": 0,
	"evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}`

func ownDocument(t *testing.T, l *lab.Lab, edits ...func(*v1alpha1.NodeConfig)) []byte {
	t.Helper()
	c := &v1alpha1.NodeConfig{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Cluster:    v1alpha1.Cluster{Server: "https://" + l.Gateway().String() + ":443", CAFile: "/etc/berth/ca.pem"},
		Identity:   v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenFile: tokenPath}},
		Components: v1alpha1.Components{Kubernetes: v1alpha1.Kubernetes{Version: l.KubernetesVersion()}, SandboxImage: lab.PauseImage},
		Node:       v1alpha1.Node{Labels: map[string]string{"example.com/a.b": "edge"}, KubeletConfig: json.RawMessage(nodeSpecifics)},
		Networking: v1alpha1.Networking{Mode: v1alpha1.NetworkBridge, ClusterDNS: []string{"10.96.0.10"}},
	}
	for _, edit := range edits {
		edit(c)
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// joins applies a document and waits until the node is ready; then the token goes,
// and nothing is left to do.
func joins(t *testing.T, l *lab.Lab, n *lab.Node, text []byte) {
	t.Helper()
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	said, _ := applyDocument(t, n)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s: ready %.2f s after the start of apply\n%s", n.Name, time.Since(start).Seconds(), said)
	if got := nodeOf(t, l, n).Labels["example.com/a.b"]; got != "edge" {
		t.Errorf("label %q", got)
	}
	run(t, n, "rm", tokenPath)
	planIsEmpty(t, l, n)
	if out := run(t, n, "sh", "-c", berthPath+" apply -f "+configPath+" 2>&1"); !strings.Contains(out, "no changes") {
		t.Errorf("second run: %s", out)
	}
}

func tokenAndCA(t *testing.T, l *lab.Lab) map[string]lab.File {
	t.Helper()
	ca, err := l.CA()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]lab.File{"/etc/berth/ca.pem": {Content: ca}, tokenPath: {Content: []byte(lab.Token + "\n"), Mode: 0o600}}
}

// TestCaseNodeConfig: a machine whose image has the programs becomes a node of a
// cluster that it knows by its CA's digest alone, as kubeadm's nodes do.
func TestCaseNodeConfig(t *testing.T) {
	l := sharedLab(t)
	if err := l.EnableKubeadm(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	join, err := l.KubeadmJoin()
	if err != nil {
		t.Fatal(err)
	}
	files := tokenAndCA(t, l)
	delete(files, "/etc/berth/ca.pem")
	n := addNode(t, l, lab.NodeConfig{Name: "case-own", Files: files})
	joins(t, l, n, ownDocument(t, l, func(c *v1alpha1.NodeConfig) {
		c.Cluster.CAFile, c.Cluster.CACertHash = "", join[6]
	}))
	runPod(t, l, "own-pod", n.Name)
}

// TestCaseNodeConfigBare: a machine without any of the programs gets them from a
// server nearby, by the digests in their addresses.
func TestCaseNodeConfigBare(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg, progs := serveImages(t, l), servePrograms(t, l)
	files := tokenAndCA(t, l)
	for p, f := range reg.trust() {
		files[p] = f
	}
	n := addNode(t, l, lab.NodeConfig{Name: "case-own-bare", Flavour: lab.Bare, Files: files})
	joins(t, l, n, ownDocument(t, l, fromSite(progs), func(c *v1alpha1.NodeConfig) {
		c.Components.SandboxImage = reg.pushPause(t, l)
		c.Artifacts.RequireDigests = true
	}))
	for _, b := range progs.Blobs() {
		if count, bytes := progs.Count(b.Path); count != 1 || bytes != b.Size {
			t.Errorf("%s was asked for %d times, %d of %d bytes", b.Path, count, bytes, b.Size)
		}
	}
	checkWorkload(t, l, reg, reg.workload, "own-bare-pod", n)
}

func fromSite(p *site.Programs) func(*v1alpha1.NodeConfig) { return p.ConfigureNode }
