package e2e

import (
	"encoding/base64"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// TestCaseIgnition is the main job on an image without cloud-init: Ignition
// writes the configuration before the first boot, and that boot provisions.
func TestCaseIgnition(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "case-ignition", Ignition: ignition(t, l)})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	if out := run(t, n, "sh", "-c", "systemctl list-unit-files --no-legend 'cloud-*'; ls /var/lib/cloud 2>&1; true"); !strings.Contains(out, "No such file") || strings.Contains(out, "cloud-init.service") {
		t.Errorf("the machine has cloud-init:\n%s", out)
	}
	info, err := n.Stat(configPath)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || owner.Uid != 0 || owner.Gid != 0 {
		t.Errorf("configuration: mode %v, owner %d:%d", info.Mode(), owner.Uid, owner.Gid)
	}
	planIsEmpty(t, l, n)
	noCycle(t, l, n)
	t.Run("reboot", func(t *testing.T) { rebootKeeps(t, l, n) })
	t.Run("power loss", func(t *testing.T) { crashKeeps(t, l, n) })
}

// ignition is the decoded CustomData for machines with Ignition.
func ignition(t *testing.T, l *lab.Lab) []byte {
	t.Helper()
	data, err := nodeconfigutils.CustomDataFlatcar(nodeConfig(t, l))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
