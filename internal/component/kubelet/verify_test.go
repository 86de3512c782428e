package kubelet

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// TestUnitsVerify has systemd read the units as it would on a node. It needs the
// package systemd, running or not: a check that is left out is a failure.
func TestUnitsVerify(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v: install the package systemd, which has it", err)
	}
	runtime, err := containerd.Resources(containerd.Settings{
		Version: "2.2.9", Program: "/usr/bin/containerd", Slice: "kubereserved.slice"})
	if err != nil {
		t.Fatal(err)
	}
	own, err := Resources(settings(func(s *Settings) {
		s.Config = []byte(`{"kubeReservedCgroup":"/kubereserved.slice"}`)
	}))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "usr/lib/systemd/system"), os.DirFS("/usr/lib/systemd/system")); err != nil {
		t.Fatal(err)
	}
	put(t, root, "/opt/bin/kubelet", []byte("#!/bin/sh\n"), 0o755)
	put(t, root, "/usr/bin/containerd", []byte("#!/bin/sh\n"), 0o755)
	for _, r := range golden.State(t, append(runtime, own...)).Resources {
		if f, ok := r.(*desired.File); ok {
			put(t, root, f.Path, f.Content.Data(), 0o644)
		}
	}
	out, err := exec.Command(verify, "verify", "--root="+root, "--man=no", Unit, containerd.Unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func put(t *testing.T, root, path string, data []byte, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}
