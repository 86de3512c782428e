package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

func TestNodeObject(t *testing.T) {
	base := Settings{Version: "1.36.3", Hostname: "VMSS-1", Labels: map[string]string{"pool": "a"}, Cluster: &Cluster{}}
	plain := func(edit func(*desired.NodeObject)) *desired.NodeObject {
		n := &desired.NodeObject{Name: "vmss-1", Kubeconfig: Kubeconfig, Unit: Unit, Labels: map[string]string{"pool": "a"}}
		edit(n)
		return n
	}
	gpu := desired.Taint{Key: "gpu", Value: "1", Effect: "NoSchedule"}
	for name, c := range map[string]struct {
		flags  map[string]string
		config string
		want   *desired.NodeObject
	}{
		"plain":          {nil, "", plain(func(*desired.NodeObject) {})},
		"labels by flag": {map[string]string{"--node-labels": "pool=b, x = y ,bare"}, "", plain(func(n *desired.NodeObject) { n.Labels = map[string]string{"pool": "b", "x": "y", "bare": ""} })},
		"taints by flag": {map[string]string{"--register-with-taints": "gpu=1:NoSchedule"}, `{"registerWithTaints":[{"key":"other","effect":"NoExecute"}]}`,
			plain(func(n *desired.NodeObject) { n.Taints = []desired.Taint{gpu} })},
		"taints in the file": {nil, `{"registerWithTaints":[{"key":"gpu","value":"1","effect":"NoSchedule"}]}`,
			plain(func(n *desired.NodeObject) { n.Taints = []desired.Taint{gpu} })},
		"other paths": {map[string]string{"--kubeconfig": "/a/k", "--hostname-override": "Other"}, "",
			plain(func(n *desired.NodeObject) { n.Kubeconfig, n.Name = "/a/k", "other" })},
		"no registration, by flag":     {map[string]string{"--register-node": "false"}, "", nil},
		"no registration, in the file": {nil, `{"registerNode":false}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Flags = c.flags
			if c.config != "" {
				s.Config = []byte(c.config)
			}
			got, _ := s.nodeObject().(*desired.NodeObject)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
