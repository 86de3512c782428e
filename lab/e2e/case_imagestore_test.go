package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/site"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// importedImage is of a registry that does not exist.
const importedImage = site.Registry + "/imported:1"

// TestCaseImageStore proves that berth's own way into containerd is as good as a
// pull: the suite passes against a real containerd, restarts included, and a pod
// that may not pull runs an image that came out of an OCI layout.
func TestCaseImageStore(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	suite := filepath.Join(t.TempDir(), "imagestore")
	build := exec.CommandContext(within(t, 3*time.Minute), "go", "test", "-c", "-o", suite, "./internal/imagestore")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the suite: %v\n%s", err, out)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "case-store", UserData: customData(t, nodeConfig(t, l))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	copyTo(t, n, "/root/suite", filepath.Dir(suite), "imagestore")
	copyTo(t, n, "/root/layout", importLayout(t, l), ".")

	out := runSuite(t, n)
	t.Logf("%d cases passed against the machine's containerd", results([]byte(out), "PASS: TestConformance/containerd/.*"))
	if results([]byte(out), "PASS: TestConformance/containerd/a_restart") != 1 || results([]byte(out), "SKIP") > 0 {
		t.Errorf("suite:\n%s", out)
	}
	runImported(t, l, n)
	if _, err := l.WaitNode(within(t, 90*time.Second), n.Name, listsImported); err != nil {
		t.Errorf("kubelet does not report the image: %v", err)
	}
}

func runSuite(t *testing.T, n *lab.Node) string {
	t.Helper()
	r, err := n.Exec(within(t, 2*time.Minute), "env", "BERTH_CONTAINERD=/run/containerd/containerd.sock", "BERTH_IMAGE_LAYOUT=/root/layout",
		"/root/suite/imagestore", "-test.v", "-test.run", "^(TestConformance|TestImportLayout)$")
	if err != nil || r.Code != 0 {
		t.Fatalf("suite: %v, exit code %d\n%s%s", err, r.Code, r.Stdout, r.Stderr)
	}
	for line := range strings.Lines(string(r.Stdout)) {
		if strings.Contains(line, "layout_test.go") {
			t.Log(strings.TrimSpace(line))
		}
	}
	return string(r.Stdout)
}

// runImported runs a pod that may not pull.
func runImported(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	awaitServiceAccount(t, l)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "imported-" + n.Name}, // cases run beside each other
		Spec: corev1.PodSpec{NodeName: n.Name, Containers: []corev1.Container{{
			Name: "workload", Image: importedImage, ImagePullPolicy: corev1.PullNever}}},
	}
	if _, err := l.Client().CoreV1().Pods("default").Create(within(t, 10*time.Second), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deletePod(t, l, pod.Name) })
	waitRunning(t, l, pod.Name)
	if out := kubectl(t, l, "logs", pod.Name); out != "workload runs in "+pod.Name+"\n" {
		t.Errorf("kubectl logs: %q", out)
	}
}

func listsImported(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, importedImage) })
}

// importLayout writes an OCI layout with an image for two platforms. The layers
// of the one that no node has are left out: nobody may ask for them.
func importLayout(t *testing.T, l *lab.Lab) string {
	t.Helper()
	program, err := l.Workload(within(t, 2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var index v1.ImageIndex = empty.Index
	var absent v1.Layer
	for _, arch := range []string{"s390x", "amd64"} {
		img, layer := programImage(t, program, arch)
		if arch == "s390x" {
			absent = layer
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = p.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": importedImage}))
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := absent.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RemoveBlob(digest); err != nil {
		t.Fatal(err)
	}
	return dir
}

// programImage holds the program and a file that tells one platform's layer from
// another's.
func programImage(t *testing.T, program, arch string) (v1.Image, v1.Layer) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "arch"), []byte(arch), 0o644); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "layer.tar")
	if out, err := exec.Command("tar", "-cf", archive, "-C", root, "arch", "-C", filepath.Dir(program), filepath.Base(program)).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	layer, err := tarball.LayerFromFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.ConfigFile(img, configFor(t, img, arch, "/"+filepath.Base(program)))
	if err != nil {
		t.Fatal(err)
	}
	return img, layer
}

func configFor(t *testing.T, img v1.Image, arch, program string) *v1.ConfigFile {
	t.Helper()
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Config.Entrypoint = "linux", arch, []string{program}
	return c
}

// copyTo copies a file or a tree of this machine into a directory of the node.
func copyTo(t *testing.T, n *lab.Node, dest, dir, name string) {
	t.Helper()
	archive, err := exec.Command("tar", "-cf", "-", "-C", dir, name).Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.ExecInput(within(t, time.Minute), archive, "sh", "-c", "mkdir -p "+dest+" && tar -C "+dest+" -xf -")
	if err != nil || r.Code != 0 {
		t.Fatalf("copy to %s: %v, exit code %d\n%s", dest, err, r.Code, r.Stderr)
	}
}

// results counts the lines of a test program's output that tell a result.
func results(out []byte, result string) int {
	return len(regexp.MustCompile(fmt.Sprintf(`(?m)^ *--- (?:%s)`, result)).FindAll(out, -1))
}
