package faults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// A change of one field restarts the unit that reads it and no other.
func TestChangeRestartsOnlyItsUnit(t *testing.T) {
	type edit = func(*aksnodeconfigv1.Configuration)
	var none []string
	kubelet, containerd := []string{"restart kubelet.service"}, []string{"restart containerd.service"}
	full := configure(t, "full.json")
	for name, c := range map[string]struct {
		edit edit
		want []string
	}{
		"kubelet flag": {changeFlags, kubelet},
		"label":        {changeLabels, none},
		"kubelet field": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeletConfig.KubeletConfigFileConfig.MaxPods = proto.Int32(50)
		}, kubelet},
		"cluster CA": {addClusterCA, kubelet},
		"sysctl":     {changeSysctl, none},
		"custom CA":  {addCustomCA, containerd},
		"pause image": {func(c *aksnodeconfigv1.Configuration) {
			c.KubeBinaryConfig.PodInfraContainerImageUrl = "mcr.microsoft.com/oss/kubernetes/pause:3.11"
		}, containerd},
		"data directory": {func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.ContainerDataDir = "/mnt/other" }, containerd},
		"ulimit": {func(c *aksnodeconfigv1.Configuration) {
			c.CustomLinuxOsConfig.UlimitConfig.NoFile = proto.String("7:7")
		}, containerd},
		"no ulimits any more": {func(c *aksnodeconfigv1.Configuration) { c.CustomLinuxOsConfig.UlimitConfig = nil }, containerd},
		"registry mirror":     {func(c *aksnodeconfigv1.Configuration) { c.BootstrapProfileContainerRegistryServer = "other.azurecr.io" }, none},
	} {
		t.Run(name, func(t *testing.T) {
			h := applied(prebaked, full)()
			s := scenario{config: full.with(t, c.edit)}
			before := len(jobs(h))
			if len(s.plan(t, h)) == 0 {
				t.Fatal("nothing is planned")
			}
			s.again(t, h)
			if d := cmp.Diff(c.want, append(none, jobs(h)[before:]...)); d != "" {
				t.Error(d)
			}
		})
	}
}
