package agent

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/credential"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeName is what kubelet calls the machine's Node: a document, a flag or a cloud may have
// it called otherwise than the machine. Its credential says so; until there is one, the
// Node has the name of the host.
func nodeName(h host.FS, hostname string) string {
	for _, p := range provision.Kubeconfigs(h) {
		if name, err := identity.NodeName(h, p); err == nil && name != "" {
			return name
		}
	}
	return hostname
}

// watchNodeName ends the agent when the Node turns out to have another name than the one
// that it goes by. What is being changed is brought to its end first.
func (a *Agent) watchNodeName(ctx context.Context) error {
	names := append(provision.Kubeconfigs(a.Host), credential.KubeletCertificate, kubelet.FlagsFile)
	if a.heed(ctx, names, func() bool { return nodeName(a.Host, a.host) != a.node.name }) {
		a.Log.Info("kubelet calls the Node otherwise: the agent starts anew", "node", nodeName(a.Host, a.host), "was", a.node.name)
		context.AfterFunc(ctx, a.rest())
		return errRestart
	}
	return nil
}
