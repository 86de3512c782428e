package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// TestCaseCloudConfig is the main job with the plain #cloud-config document.
func TestCaseCloudConfig(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	doc, err := nodeconfigutils.CloudConfig(nodeConfig(t, l))
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "case-cloud", UserData: []byte(doc), Files: reg.trust()})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	if info, err := n.Stat(configPath); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("configuration: %v, %v", info, err)
	}
	checkWorkload(t, l, reg, reg.workload, "cloud-pod", n)
	planIsEmpty(t, l, n)
	noCycle(t, l, n)
}

// TestCaseCgroupV2 boots a node with cgroup v2 only. It becomes Ready; pods can't
// run there, where the host has the controllers on v1.
func TestCaseCgroupV2(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "case-v2", UserData: customData(t, nodeConfig(t, l)), CgroupV2: true})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	if out := run(t, n, "stat", "-f", "-c", "%T", "/sys/fs/cgroup"); strings.TrimSpace(out) != "cgroup2fs" {
		t.Errorf("cgroup: %q", out)
	}
	planIsEmpty(t, l, n)
}
