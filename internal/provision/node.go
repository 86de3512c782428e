package provision

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Node is the node that a state makes of a machine, as far as a wait for it must
// know.
type Node struct {
	// Name is what it registers as.
	Name string
	// Kubeconfig and Bootstrap are kubelet's files; Bootstrap is "" where it needs
	// none.
	Kubeconfig, Bootstrap string
	// Healthz is kubelet's health endpoint; "" where the state does not say it.
	Healthz string
}

// NodeOf reads kubelet's flags where the state hands them to its unit, and its
// configuration. What they do not say is as berth would have it.
func NodeOf(h host.FS, st *desired.State) Node {
	n := Node{Kubeconfig: kubelet.Kubeconfig}
	for _, r := range st.Resources {
		switch r := r.(type) {
		case *desired.ClientCertificate:
			n.Name = r.NodeName
		case *desired.File:
			n.read(r)
			if r.Path == kubelet.ConfigFile {
				n.Healthz = healthz(r.Content.Data())
			}
		}
	}
	n.Name = cmp.Or(n.Name, Hostname(h))
	return n
}

// read takes the flags of a file that kubelet's unit reads.
func (n *Node) read(f *desired.File) {
	if f.Path != kubelet.FlagsFile && path.Dir(f.Path) != kubelet.DropInDir {
		return
	}
	for _, m := range nodeFlag().FindAllStringSubmatch(string(f.Content.Data()), -1) {
		switch value := m[2]; m[1] {
		case "kubeconfig":
			n.Kubeconfig = value
		case "bootstrap-kubeconfig":
			n.Bootstrap = value
		case "hostname-override":
			n.Name = cmp.Or(n.Name, strings.ToLower(value))
		}
	}
}

var nodeFlag = lazyregexp.New(`--(kubeconfig|bootstrap-kubeconfig|hostname-override)=([^\s"']+)`)

// healthz is the health endpoint of a configuration of kubelet; "" for none.
func healthz(text []byte) string {
	config := map[string]any{}
	if json.Unmarshal(text, &config) != nil {
		return ""
	}
	return kubelet.Healthz(config)
}
