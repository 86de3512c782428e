package agent

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/internal/agent/credential"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeName is what kubelet calls the machine's Node: a document, a flag or a cloud may have
// it called otherwise than the machine. Its credential says so; "" where none does.
func nodeName(h host.FS) string {
	for _, p := range provision.Kubeconfigs(h) {
		if name, err := identity.NodeName(h, p); err == nil && name != "" {
			return name
		}
	}
	return ""
}

// isRenamed says whether kubelet's credential is of another Node than the one that the agent
// goes by. One that can't be read is no other name.
func (a *Agent) isRenamed() bool {
	name := nodeName(a.Host)
	return name != "" && name != a.node.name
}

// watchNodeName ends the agent when the Node turns out to have another name than the one
// that it goes by. What is being changed is brought to its end first.
func (a *Agent) watchNodeName(ctx context.Context) error {
	for {
		names := a.nodeNameFiles()
		if !a.heed(ctx, names, func() bool { return a.isRenamed() || !slices.Equal(names, a.nodeNameFiles()) }) {
			return nil
		}
		if !a.isRenamed() {
			continue
		}
		goOn := a.rest()
		if !a.isRenamed() { // a change that was taken back
			goOn()
			continue
		}
		a.Log.Info("kubelet calls the Node otherwise: the agent starts anew", "node", nodeName(a.Host), "was", a.node.name)
		context.AfterFunc(ctx, goOn)
		return errRestart
	}
}

// nodeNameFiles are those that say where kubelet's credential is, and what is in it.
func (a *Agent) nodeNameFiles() []string {
	return append(provision.Kubeconfigs(a.Host), credential.KubeletCertificate, kubelet.FlagsFile, kubelet.DropInDir, provision.KubeletUnitFile)
}
