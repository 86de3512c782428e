package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
)

// ofKubelet is what an image has, and a node with more in it, for a kubelet that is the
// node's alone: parameters of the kernel that it protects, and the slice that it reserves.
var ofKubelet = []string{
	"update file:/etc/sysctl.d/999-sysctl-aks.conf",
	"update file:/etc/systemd/system/kubelet.service.d/10-containerd-base-flag.conf",
}

// TestNodeOnABuiltImage: a node's run below a root in which the image build of the same
// document was applied does the rest alone: nothing of what the build did is in its plan,
// and its own part is.
func TestNodeOnABuiltImage(t *testing.T) {
	h := imageRoot(t)
	p := (&env{}).parts(h)
	p.inquiry.Source.Offline = true
	facts, err := p.inquiry.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	build, node := stateOf(t, true, facts), stateOf(t, false, facts)
	built, err := p.engine(h, "test", nil).Apply(t.Context(), build)
	if err != nil || len(built.Plan.Actions) < 20 {
		t.Fatalf("%v, %d actions", err, len(built.Plan.Actions))
	}
	rest, err := p.engine(h, "test", nil).Plan(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	done := idsOf(built.Plan.Actions)
	var again []string
	for _, a := range rest.Actions {
		if slices.Contains(done, a.ID) {
			again = append(again, string(a.Verb)+" "+string(a.ID))
		}
	}
	if diff := cmp.Diff(ofKubelet, again); diff != "" {
		t.Errorf("done again (-want +got):\n%s", diff)
	}
	for _, id := range []desired.ID{"file:/etc/kubernetes/azure.json", "file:/etc/kubernetes/certs/ca.crt", "file:/etc/default/kubelet"} {
		if slices.Contains(done, id) || !slices.Contains(idsOf(rest.Actions), id) {
			t.Errorf("%s is no part of the node's run alone", id)
		}
	}
}

func idsOf(actions []converge.Action) []desired.ID {
	var out []desired.ID
	for _, a := range actions {
		out = append(out, a.ID)
	}
	return out
}

// stateOf is what the whole document asks for, as the build of an image or of a node.
func stateOf(t *testing.T, imageBuild bool, facts component.Facts) *desired.State {
	t.Helper()
	text, err := os.ReadFile("../contract/aks/testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	all["pre_provision_only"] = imageBuild
	if text, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	doc, err := contract.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	st, err := doc.Translate(facts)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ofTheNode is all that a minimal document asks of a node beside what its image has.
var ofTheNode = []string{
	"create file:/etc/berth/packet-filter.json",
	"create file:/etc/default/kubelet",
	"create file:/etc/kubernetes/azure.json",
	"create file:/etc/kubernetes/certs/ca.crt",
	"create file:/etc/systemd/system/kubelet.service.d/10-packet-filter.conf",
	"create file:/etc/systemd/system/kubelet.service.d/10-tlsbootstrap.conf",
	"create file:/var/lib/kubelet/bootstrap-kubeconfig",
	"enable unit:kubelet.service",
}

// nodeArchive is what a cloud serves as the programs of Kubernetes, and its digest.
func nodeArchive(t *testing.T) (content []byte, sum string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range []string{"kubelet", "kubectl"} {
		text := "#!/bin/sh\necho " + name + "\n"
		err := w.WriteHeader(&tar.Header{Name: "kubernetes/node/bin/" + name, Mode: 0o755, Size: int64(len(text))})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(digest[:])
}

// below runs a command for a tree, which it opens itself, as berth does.
func below(root string, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	e := &env{start: time.Now(), out: &out, err: &errOut, width: 100, open: func(at string) (host.Host, error) { return machine.New(at) }}
	return e.run(context.Background(), append(args, "--root", root)), out.String(), errOut.String()
}

// TestImageIsBuiltBelowARoot: apply --root --fetch puts all of an image build into a tree,
// what has to be fetched, too, and from the network once; of the node's run of the same
// document, in the same tree, the rest alone is left, and nothing of what a cluster gives is
// in the image.
func TestImageIsBuiltBelowARoot(t *testing.T) {
	content, sum := nodeArchive(t)
	var served atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = w.Write(content)
	}))
	defer s.Close()
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	document := func(imageBuild bool) string {
		all := map[string]any{}
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		all["pre_provision_only"] = imageBuild
		all["kube_binary_config"] = map[string]any{"kube_binary_url": s.URL + "/kubernetes-node-linux-amd64.tar.gz#sha256=" + sum}
		written, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "document.json")
		write(t, file, string(written))
		return file
	}
	root, build, node := imageDir(t), document(true), document(false)
	for _, p := range []string{"/usr/bin/containerd-shim-runc-v2", "/opt/cni/bin/loopback"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, p)), 0o755), os.WriteFile(filepath.Join(root, p), nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}

	if code, _, stderr := below(root, "berth", "apply", "-f", build); code != 0 || served.Load() != 0 {
		t.Errorf("without --fetch: code %d, served %d times: %s", code, served.Load(), stderr)
	}
	if _, err := os.Lstat(filepath.Join(root, "/opt/bin/kubelet")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without --fetch: %v", err)
	}
	if code, _, stderr := below(root, "berth", "apply", "--fetch", "-f", build); code != 0 || served.Load() != 1 {
		t.Fatalf("the build: code %d, served %d times: %s", code, served.Load(), stderr)
	}
	if code, stdout, _ := below(root, "berth", "plan", "-f", build); code != 0 || !strings.HasSuffix(stdout, "no changes\n") {
		t.Errorf("the build once more: code %d: %s", code, stdout)
	}
	for _, p := range []string{"/opt/bin/kubelet", "/opt/bin/kubectl", "/etc/containerd/config.toml", "/etc/systemd/system/kubelet.service"} {
		if info, err := os.Lstat(filepath.Join(root, p)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range []string{"/etc/kubernetes/certs/ca.crt", "/etc/default/kubelet", "/var/lib/kubelet/bootstrap-kubeconfig", "/etc/systemd/system/multi-user.target.wants/kubelet.service"} {
		if _, err := os.Lstat(filepath.Join(root, p)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the image: %v", p, err)
		}
	}

	code, stdout, stderr := below(root, "berth", "plan", "-f", node, "-o", "json")
	var plan struct {
		Actions []struct{ ID, Verb string }
	}
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || code != exitcode.Pending {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	var rest []string
	for _, a := range plan.Actions {
		rest = append(rest, a.Verb+" "+a.ID)
	}
	slices.Sort(rest)
	if diff := cmp.Diff(ofTheNode, rest); diff != "" {
		t.Errorf("the node's run (-want +got):\n%s", diff)
	}
	if code, _, stderr := below(root, "berth", "apply", "--fetch", "-f", node); code != 0 || served.Load() != 1 {
		t.Errorf("the node's run: code %d, served %d times: %s", code, served.Load(), stderr)
	}
	if code, stdout, _ := below(root, "berth", "plan", "-f", node); code != 0 || !strings.HasSuffix(stdout, "no changes\n") {
		t.Errorf("the node's run once more: code %d: %s", code, stdout)
	}
}
