package aks

import (
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/desired"
)

// outboundCheckSkipped tells the checks of a published image that the cluster has
// no way out, which is as it should be.
const outboundCheckSkipped = "/opt/azure/outbound-check-skipped"

// isolation is what a node of a cluster without a way out has besides its mirror.
func (t *translation) isolation() error {
	if t.cfg.GetBootstrapProfileContainerRegistryServer() != "" && t.joins() {
		t.add("bootstrap_profile_container_registry_server",
			&desired.File{Path: outboundCheckSkipped, Content: desired.Text(""), Mode: 0o644, Life: desired.Managed})
	}
	return nil
}

// names: pods get the resolver's own list of servers, whatever the contract says.
func (t *translation) names() error {
	t.node = append(t.node, t.add("", resolver.Resources(t.facts.Resolved)...)...)
	return nil
}
