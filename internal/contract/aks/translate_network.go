package aks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/component/resolver"
	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
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

// privateHosts is the address of an API server whose name the network need not know. It is
// in place before kubelet starts.
func (t *translation) privateHosts() error {
	if !keepsHosts(t) {
		return nil
	}
	t.node = append(t.node, t.add("enable_hosts_config_agent", hostsagent.Resources(hostsagent.Settings{
		Name: t.cfg.GetApiServerConfig().GetApiServerName(), Address: t.facts.APIServer, Program: t.facts.Program})...)...)
	return nil
}

func keepsHosts(t *translation) bool { return t.cfg.GetEnableHostsConfigAgent() && privateLink(t) }

// privateAddress is where the API server of such a name is; "" asks the name servers.
func (t *translation) privateAddress() string {
	if !keepsHosts(t) || !t.facts.APIServer.IsValid() {
		return ""
	}
	return t.facts.APIServer.String()
}

func knowsServer(t *translation) bool { return t.facts.APIServer.IsValid() }

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
	return searchdomain.Settings{Domain: c.GetDomainName(), User: c.GetRealmUser(), Password: desired.Secret(c.GetRealmPassword()), Resolved: t.facts.Resolved, Program: t.facts.Program}
}

// inRealm: the machine is in the domain, and nobody enters it again.
func inRealm(t *translation) bool {
	return slices.Contains(t.facts.Realms, t.searchDomain().Realm())
}

// domainOf reports where the machine is in another domain.
func domainOf(t *translation) disposition {
	if len(t.facts.Realms) == 0 || inRealm(t) {
		return toState(t)
	}
	return disposition{partly, searchdomain.Keytab + " has keys of " + strings.Join(t.facts.Realms, ", ") + ": the machine is in another domain, which it does not leave"}
}

func joinsDomain(t *translation) bool { return t.searchDomain().Complete() }

// interfaces are those beside the first. More than the machine has are no mistake to pass
// over: pods would come to a node that is not on their network.
func (t *translation) interfaces() error {
	const field = "network_config.standard_secondary_nic_count"
	count, has := int(t.cfg.GetNetworkConfig().GetStandardSecondaryNicCount()), t.facts.Interfaces
	if !moreInterfaces(t) || !t.joins() {
		return nil
	}
	if len(has) > 0 && has[0] != "" && len(has) <= min(count, nics.Most) {
		return &exitcode.Error{Number: exitcode.SecondaryNIC, During: "translate the configuration", At: field,
			Err: fmt.Errorf("%s asks for %d network interfaces beside the first, and the instance metadata knows %d", field, count, len(has)-1)}
	}
	t.add(field, nics.Resources(count, has)...)
	return nil
}

// secondFamily is there before kubelet registers the node with its addresses.
func (t *translation) secondFamily() error {
	if dualStack(t) {
		t.node = append(t.node, t.add("ipv6_dual_stack_enabled", imageunits.SecondFamily(t.facts.ImageUnits)...)...)
	}
	return nil
}

func dualStack(t *translation) bool { return t.cfg.GetIpv6DualStackEnabled() && t.facts.IPv6 }

func asksForIPv6(t *translation) bool { return slices.Contains(t.facts.ImageUnits, imageunits.DHCPv6) }

func moreInterfaces(t *translation) bool {
	return t.cfg.GetNetworkConfig().GetStandardSecondaryNicCount() > 0
}
