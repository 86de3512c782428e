// Package imageunits starts what published images bring and do not start by themselves:
// what is for whoever watches over a node, and what asks for IPv6 addresses.
package imageunits

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// The units have the published names.
const (
	LogCollector    = "aks-log-collector.timer"
	NodeExporter    = "node-exporter.service"
	ExporterRestart = "node-exporter-restart.path"
	// Snapshots installs packages out of a snapshot of the distribution's archive.
	Snapshots = "snapshot-update.timer"
	// LocalDNSExporter has figures of the node's own name server.
	LocalDNSExporter = "localdns-exporter.socket"
	// DHCPv6 asks for an address of the second family.
	DHCPv6 = "dhcpv6.service"
)

var watchers = []string{LogCollector, NodeExporter, ExporterRestart, Snapshots, LocalDNSExporter}

// ExporterDropIn is where LocalDNSExporter is told its address, exporterPort its port.
const (
	ExporterDropIn = "/etc/systemd/system/" + LocalDNSExporter + ".d/50-berth-address.conf"
	exporterPort   = 9353
)

// What tells others that the node has LocalDNSExporter, as published.
const (
	ExporterLabel  = "kubernetes.azure.com/localdns-exporter"
	ExporterSwitch = "enabled"
)

// Names are all of them.
func Names() []string { return append(slices.Clone(watchers), DHCPv6) }

// Settings are what differs from node to node.
type Settings struct {
	// Has are those of Names that the image brings.
	Has []string
	// LocalDNS: the node has a name server of its own.
	LocalDNS bool
	// Addresses are the node's, with a comma between; the first counts. Without one
	// LocalDNSExporter listens where the image says.
	Addresses string
	// After is what comes first.
	After []desired.ID
}

// SecondFamily is what asks for an IPv6 address beside the IPv4 one, where the image has it:
// the node can't do without the address.
func SecondFamily(has []string) []desired.Resource {
	if !slices.Contains(has, DHCPv6) {
		return nil
	}
	return []desired.Resource{&desired.Unit{Name: DHCPv6, Enablement: desired.Enabled, Activation: desired.Started}}
}

// Resources are the units for whoever watches that the image has. A node does without those that only tell of
// it; without snapshots its packages would grow old in silence.
func Resources(s Settings) []desired.Resource {
	var out []desired.Resource
	for _, name := range watchers {
		if !slices.Contains(s.Has, name) || name == LocalDNSExporter && !s.LocalDNS {
			continue
		}
		u := &desired.Unit{Name: name, Enablement: desired.Enabled, Activation: desired.Started, Optional: name != Snapshots}
		u.After = slices.Clone(s.After)
		if f := s.dropIn(); f != nil && name == LocalDNSExporter {
			u.After = append(u.After, f.ID())
			out = append(out, f)
		}
		out = append(out, u)
	}
	return out
}

// dropIn has the socket listen at the node's address, in place of where the image says.
func (s Settings) dropIn() desired.Resource {
	first, _, _ := strings.Cut(s.Addresses, ",")
	address, err := netip.ParseAddr(strings.TrimSpace(first))
	if err != nil {
		return nil
	}
	return &desired.File{Path: ExporterDropIn, Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
		unitfile.In("Socket", "ListenStream", "", "ListenStream", netip.AddrPortFrom(address, exporterPort).String())))}
}
