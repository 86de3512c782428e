package aks

import (
	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/component/searchdomain"
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

// domain is the domain that the machine is one of, before it is a node.
func (t *translation) domain() error {
	if s := t.searchDomain(); s.Complete() && t.joins() {
		t.node = append(t.node, t.add("custom_search_domain_config", searchdomain.Resources(s)...)...)
	}
	return nil
}

func (t *translation) searchDomain() searchdomain.Settings {
	c := t.cfg.GetCustomSearchDomainConfig()
	return searchdomain.Settings{Domain: c.GetDomainName(), User: c.GetRealmUser(), Password: desired.Secret(c.GetRealmPassword()), Resolved: t.facts.Resolved}
}

func joinsDomain(t *translation) bool { return t.searchDomain().Complete() }

// interfaces are those beside the first.
func (t *translation) interfaces() error {
	if networkd(t) && t.joins() {
		t.add("network_config.standard_secondary_nic_count", nics.Resources(int(t.cfg.GetNetworkConfig().GetStandardSecondaryNicCount()))...)
	}
	return nil
}

func networkd(t *translation) bool { return t.facts.HasVendorUnit(nics.Unit) }

func moreInterfaces(t *translation) bool {
	return t.cfg.GetNetworkConfig().GetStandardSecondaryNicCount() > 0
}
