package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// TestNoGPU: a machine without a GPU that is to have one says so soon and starts no
// kubelet; without the wish it becomes a node.
func TestNoGPU(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	m := &badMachine{l, addNode(t, l, lab.NodeConfig{Name: "no-gpu"})}
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	m.crashes(t, badCase{name: "no GPU", code: 84, field: "gpu_config.enable_nvidia", says: []string{"no NVIDIA GPU"}, hint: "size with NVIDIA GPUs", within: 20 * time.Second,
		config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
			c.VmSize, c.GpuConfig = "Standard_NC4as_T4_v3", &aksnodeconfigv1.GpuConfig{EnableNvidia: proto.Bool(true), ConfigGpuDriver: true}
		})})
	if r := m.exec(t, "systemctl", "is-active", "kubelet.service", "berth-gpu.service"); strings.TrimSpace(string(r.Stdout)) != "inactive\ninactive" {
		t.Errorf("kubelet and the unit for GPUs are %s", r.Stdout)
	}
	if r := m.provision(t, badCase{name: "without the wish", config: m.document(t)}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if _, err := l.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, l, m.node)
}
