// Package cni prepares the container network: its directories, and for kubenet
// the template from which containerd writes the configuration once the cluster
// has given the node its pod addresses.
//
// But for Azure's own plugins nothing here is written to the configuration directory itself. What lies there
// is either containerd's own or a network add-on's, and containerd overlooks a
// file that is moved in from another directory. Not even one for the loopback
// interface, which containerd sets up by itself: with it containerd would take
// the network for ready, the node for one that can run pods, and never read the
// template.
package cni

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Where containerd looks; the names are the published ones.
const (
	ConfDir      = "/etc/cni/net.d"
	BinDir       = "/opt/cni/bin"
	TemplateFile = "/etc/containerd/kubenet_template.conf"
	// GeneratedFile is what containerd makes of the template. It keeps one that is
	// there.
	GeneratedFile = ConfDir + "/10-containerd-net.conflist"
)

// Directories hold configuration and plugins, for every network.
func Directories() []desired.Resource {
	return []desired.Resource{
		&desired.Directory{Path: ConfDir, Mode: 0o755},
		&desired.Directory{Path: BinDir, Mode: 0o755},
	}
}

type conflist struct {
	CNIVersion string   `json:"cniVersion"`
	Name       string   `json:"name"`
	Plugins    []plugin `json:"plugins"`
}

type plugin struct {
	Type         string          `json:"type"`
	Mode         string          `json:"mode,omitempty"`
	ViaHost      []string        `json:"ipsToRouteViaHost,omitempty"`
	Bridge       string          `json:"bridge,omitempty"`
	IsGateway    bool            `json:"isGateway,omitempty"`
	IPMasq       *bool           `json:"ipMasq,omitempty"`
	HairpinMode  bool            `json:"hairpinMode,omitempty"`
	IPAM         *ipam           `json:"ipam,omitempty"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`
	SNAT         bool            `json:"snat,omitempty"`
}

type ipam struct {
	Type   string   `json:"type"`
	Ranges []string `json:"ranges,omitempty"`
	Routes []string `json:"routes,omitempty"`
}

// containerd fills these in (text/template) from the node's pod address ranges;
// they stand in place of the items of a list.
const (
	ranges = `{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$r}}"}]{{end}}`
	routes = `{{range $i, $r := .Routes}}{{if $i}}, {{end}}{"dst": "{{$r}}"}{{end}}`
)

// Kubenet is the template of a bridge whose ports reflect traffic (hairpin), so
// that a pod reaches itself through a service without the bridge being
// promiscuous and doubling packets. Masquerade: what pods send out of their
// network carries the machine's address.
func Kubenet(masquerade bool) (desired.Resource, error) {
	text, err := kubenet(masquerade, ranges, routes)
	if err != nil {
		return nil, err
	}
	return &desired.File{Path: TemplateFile, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}, nil
}

// KubenetMade is what containerd makes of the template for a node, when kubelet's
// unit has told it the addresses.
func KubenetMade(masquerade bool, unit, node, kubeconfig string) (desired.Resource, error) {
	const gap = "\x00"
	text, err := kubenet(masquerade, gap, gap)
	return &desired.PodNetwork{
		Base: desired.Base{After: []desired.ID{desired.FileID(TemplateFile)}},
		File: GeneratedFile, Template: TemplateFile, Parts: strings.Split(text, gap),
		Unit: unit, Node: node, Kubeconfig: kubeconfig,
	}, err
}

// kubenet is the configuration with texts in place of addresses.
func kubenet(masquerade bool, ranges, routes string) (string, error) {
	list := conflist{CNIVersion: "0.3.1", Name: "kubenet", Plugins: []plugin{{
		Type: "bridge", Bridge: "cbr0", IsGateway: true, IPMasq: &masquerade, HairpinMode: true,
		IPAM: &ipam{Type: "host-local", Ranges: []string{"@ranges@"}, Routes: []string{"@routes@"}},
	}, {
		Type: "portmap", Capabilities: map[string]bool{"portMappings": true},
	}}}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write kubenet template: %w", err)
	}
	return strings.NewReplacer(`"@ranges@"`, ranges, `"@routes@"`, routes).Replace(string(b)) + "\n", nil
}

// BridgeFile is the configuration of a bridge whose addresses a document names.
const BridgeFile = ConfDir + "/10-berth.conflist"

// Bridge is that configuration; the address ranges are CIDRs, one or one of each
// family.
func Bridge(cidrs []string) (desired.Resource, error) {
	var subnets, defaults []string
	for _, c := range cidrs {
		subnets = append(subnets, fmt.Sprintf(`[{"subnet": %q}]`, c))
		everywhere := "0.0.0.0/0"
		if strings.Contains(c, ":") {
			everywhere = "::/0"
		}
		defaults = append(defaults, fmt.Sprintf(`{"dst": %q}`, everywhere))
	}
	text, err := kubenet(true, strings.Join(subnets, ", "), strings.Join(defaults, ", "))
	if err != nil {
		return nil, err
	}
	return &desired.File{Path: BridgeFile, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}, nil
}

// AzureFile is the configuration of Azure's own plugins.
const AzureFile = ConfDir + "/10-azure.conflist"

// AzurePlugins are their programs.
var AzurePlugins = []string{"azure-vnet", "azure-vnet-ipam", "azure-vnet-telemetry"}

// Azure is that configuration as Azure's archive has it: pods have addresses of the
// virtual network and no bridge between them (transparent mode, which Calico needs, too).
// Once there it is the cluster's: network add-ons take its place.
func Azure() (desired.Resource, error) {
	list := conflist{CNIVersion: "0.3.0", Name: "azure", Plugins: []plugin{{
		Type: AzurePlugins[0], Mode: "transparent", ViaHost: []string{"169.254.20.10"}, IPAM: &ipam{Type: AzurePlugins[1]},
	}, {
		Type: "portmap", Capabilities: map[string]bool{"portMappings": true}, SNAT: true,
	}}}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write configuration of Azure's plugins: %w", err)
	}
	return &desired.File{Path: AzureFile, Content: desired.Bytes(append(b, '\n')), Mode: 0o600, Life: desired.Seed}, nil
}
