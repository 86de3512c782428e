package node

import (
	"cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

// maxPods is kubelet's own default.
const maxPods = 110

// setDefaults fills in what a document does not say and no machine decides.
func setDefaults(c *v1alpha1.NodeConfig) {
	c.Node.MaxPods = cmp.Or(c.Node.MaxPods, maxPods)
	if c.Node.Drain != nil {
		c.Node.Drain.Timeout = cmp.Or(c.Node.Drain.Timeout, "5m")
	}
	c.Networking.Mode = cmp.Or(c.Networking.Mode, v1alpha1.NetworkCluster)
	c.Networking.ClusterDomain = cmp.Or(c.Networking.ClusterDomain, "cluster.local")
}
