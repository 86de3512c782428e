package kubelet

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

func TestAnnounce(t *testing.T) {
	labels := map[string]string{
		"beta.kubernetes.io/arch": runtime.GOARCH, "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH,
		"kubernetes.io/os": "linux", "kubernetes.io/hostname": "vmss-1", "agentpool": "a",
	}
	base := Settings{Version: "1.36.3", Hostname: "VMSS-1", Labels: map[string]string{"agentpool": "a"}, Cluster: &Cluster{}}
	attach := map[string]string{attachDetach: "true"}
	for name, c := range map[string]struct {
		flags  map[string]string
		config string
		want   *desired.Node
	}{
		"plain":  {nil, "", &desired.Node{Labels: labels, Annotations: attach}},
		"taints": {map[string]string{"--register-with-taints": "a=b:NoSchedule,c:NoExecute"}, "", &desired.Node{Labels: labels, Annotations: attach, Taints: []desired.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}}},
		"external cloud": {map[string]string{"--cloud-provider": "external", "--node-ip": "10.0.0.4"}, "", &desired.Node{Labels: labels,
			Annotations: map[string]string{attachDetach: "true", providedNodeIP: "10.0.0.4"}, Taints: []desired.Taint{{Key: uninitialized, Value: "true", Effect: "NoSchedule"}}}},
		"others' configuration": {nil, `{"kind":"KubeletConfiguration"}`, &desired.Node{Labels: labels, Annotations: attach, Unless: ConfigDir}},
		"labels by flag":        {map[string]string{"--node-labels": "x=y"}, "", nil},
		"provider id":           {map[string]string{"--provider-id": "azure:///x"}, "", nil},
		"old cloud provider":    {map[string]string{"--cloud-provider": "azure"}, "", nil},
		"taints in the file":    {nil, `{"registerWithTaints":[{"key":"a"}]}`, nil},
		"taint without effect":  {map[string]string{"--register-with-taints": "a"}, "", nil},
		"a file of the image":   {map[string]string{"--config": "/etc/kubernetes/kubelet.yaml"}, "", nil},
		"registration is off":   {map[string]string{"--register-node": "false"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Flags = c.flags
			if c.config != "" {
				s.Config = json.RawMessage(c.config)
			}
			if diff := cmp.Diff(c.want, s.announce()); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
