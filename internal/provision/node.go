package provision

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/ledger"
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

// Kubeconfigs are where kubelet's credential may be on a machine, in the order in which
// they are to be looked at: where its flags say, berth's path, and that of documents of
// the published agent.
func Kubeconfigs(h host.FS) []string {
	n := Node{}
	n.readAt(h, KubeletUnitFile)
	names, _ := h.ReadDir(kubelet.DropInDir) // what can't be read says nothing
	for _, name := range names {
		if path.Ext(name) == ".conf" {
			n.readAt(h, path.Join(kubelet.DropInDir, name))
		}
	}
	n.readAt(h, kubelet.FlagsFile)
	all := []string{kubelet.Kubeconfig, kubelet.AgentKubeconfig}
	if !path.IsAbs(n.Kubeconfig) {
		return all
	}
	return append([]string{n.Kubeconfig}, slices.DeleteFunc(all, func(p string) bool { return p == n.Kubeconfig })...)
}

// KubeletUnitFile is the definition of kubelet's unit, which may have its flags.
var KubeletUnitFile = path.Join(path.Dir(kubelet.DropInDir), kubelet.Unit)

// readAt takes the flags of a file, without its comments.
func (n *Node) readAt(h host.FS, p string) {
	text, _, err := ledger.ReadFile(h, p)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			n.readFlags([]byte(line))
		}
	}
}

// read takes the flags of a file that kubelet's unit reads.
func (n *Node) read(f *desired.File) {
	if f.Path == kubelet.FlagsFile || path.Dir(f.Path) == kubelet.DropInDir {
		n.readFlags(f.Content.Data())
	}
}

func (n *Node) readFlags(text []byte) {
	for _, m := range nodeFlag().FindAllStringSubmatch(string(text), -1) {
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

// nodeFlag matches a flag as kubelet takes it: its value follows "=" or a space.
var nodeFlag = lazyregexp.New(`--(kubeconfig|bootstrap-kubeconfig|hostname-override)(?:=|[ \t]+)([^\s"'-][^\s"']*)`)

// healthz is the health endpoint of a configuration of kubelet; "" for none.
func healthz(text []byte) string {
	config := map[string]any{}
	if json.Unmarshal(text, &config) != nil {
		return ""
	}
	return kubelet.Healthz(config)
}
