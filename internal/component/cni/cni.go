// Package cni prepares the container network: its directories, and for kubenet
// the template from which containerd writes the configuration once the cluster
// has given the node its pod addresses.
//
// Nothing here is written to the configuration directory itself. What lies there
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

// Directories are the places of configuration and plugins, for every network.
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
	Bridge       string          `json:"bridge,omitempty"`
	IsGateway    bool            `json:"isGateway,omitempty"`
	IPMasq       *bool           `json:"ipMasq,omitempty"`
	HairpinMode  bool            `json:"hairpinMode,omitempty"`
	IPAM         *ipam           `json:"ipam,omitempty"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`
}

type ipam struct {
	Type   string   `json:"type"`
	Ranges []string `json:"ranges"`
	Routes []string `json:"routes"`
}

// containerd fills these in (text/template) from the node's pod address ranges;
// they stand in place of the items of a list.
const (
	ranges = `{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$r}}"}]{{end}}`
	routes = `{{range $i, $r := .Routes}}{{if $i}}, {{end}}{"dst": "{{$r}}"}{{end}}`
)

// Kubenet is the template of a bridge whose ports reflect traffic (hairpin), so
// that a pod reaches itself through a service without the bridge being
// promiscuous and doubling packets.
func Kubenet() (desired.Resource, error) {
	masquerade := false
	list := conflist{CNIVersion: "0.3.1", Name: "kubenet", Plugins: []plugin{{
		Type: "bridge", Bridge: "cbr0", IsGateway: true, IPMasq: &masquerade, HairpinMode: true,
		IPAM: &ipam{Type: "host-local", Ranges: []string{"@ranges@"}, Routes: []string{"@routes@"}},
	}, {
		Type: "portmap", Capabilities: map[string]bool{"portMappings": true},
	}}}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write kubenet template: %w", err)
	}
	text := strings.NewReplacer(`"@ranges@"`, ranges, `"@routes@"`, routes).Replace(string(b)) + "\n"
	return &desired.File{Path: TemplateFile, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}, nil
}
