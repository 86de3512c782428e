// Package packetfilter keeps pods from what is the node's alone on its cloud's
// network: the WireServer, and where it is asked for the instance metadata.
package packetfilter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// Names and paths.
const (
	Table = "berth"
	// RulesFile holds the table as JSON; berth node firewall reads it.
	RulesFile = paths.SettingsDir + "/packet-filter.json"
	// DropIn makes kubelet's service set the table before it starts.
	DropIn = kubelet.DropInDir + "/10-packet-filter.conf"
	// Program is where berth is unless somebody knows better.
	Program = "/opt/azure/containers/aks-node-controller"
)

// Chains of the table. A chain's name says what its rules are for.
const (
	WireServerChain = "wireserver"
	MetadataChain   = "metadata"
	localDNSChain   = "localdns"
)

// The priorities of iptables' tables (linux/netfilter_ipv4.h).
const (
	raw    = -300
	Mangle = -150
	Filter = 0
)

var (
	wireServer = netip.MustParseAddr("168.63.129.16")
	metadata   = netip.MustParseAddr("169.254.169.254")
)

// Settings are what differs from node to node.
type Settings struct {
	// RestrictMetadata: pods don't reach the instance metadata.
	RestrictMetadata bool
	// InMangle: that rule comes before those of iptables' filter table.
	InMangle bool
	// LocalDNS are the addresses of the node's own name server, if it has one: of
	// questions to it the kernel keeps no connections, of which there are many.
	LocalDNS []netip.Addr
	// Program is berth's own path; empty: Program.
	Program string
	// IPTables is the image's iptables; empty: it has none.
	IPTables string
}

// Resources are the table, the file that it comes back from, and kubelet's
// drop-in. What starts pods comes after all of them.
func Resources(s Settings) ([]desired.Resource, error) {
	filter := &desired.PacketFilter{Table: Table, Chains: chains(s)}
	rules, err := json.MarshalIndent(filter, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write packet filter: %w", err)
	}
	return []desired.Resource{
		&desired.File{Path: RulesFile, Content: desired.Text(string(rules) + "\n"), Mode: 0o644, Life: desired.Managed},
		filter,
		&desired.File{Path: DropIn, Content: desired.Text(dropIn(s)), Mode: 0o644, Life: desired.Managed},
	}, nil
}

// chains: the published rules, which only meet what is forwarded, as the traffic of
// pods is; pods in the node's own network are not kept from anything.
func chains(s Settings) []desired.FilterChain {
	out := []desired.FilterChain{{Name: WireServerChain, Hook: "forward", Priority: Filter, Drop: []desired.Drop{
		{To: wireServer, TCPPort: 80, Comment: "pods do not reach the WireServer"},
		{To: wireServer, TCPPort: 32526, Comment: "pods do not reach the WireServer"},
	}}}
	if len(s.LocalDNS) > 0 {
		out = append(out, untracked("output", s.LocalDNS), untracked("prerouting", s.LocalDNS))
	}
	if !s.RestrictMetadata {
		return out
	}
	priority := Filter
	if s.InMangle {
		priority = Mangle
	}
	return append(out, desired.FilterChain{Name: MetadataChain, Hook: "forward", Priority: priority, Drop: []desired.Drop{
		{To: metadata, TCPPort: 80, Comment: "pods do not reach the instance metadata"},
	}})
}

// untracked is a chain for questions: those of the machine go out, those of its pods
// come in.
func untracked(hook string, addresses []netip.Addr) desired.FilterChain {
	c := desired.FilterChain{Name: localDNSChain + "-" + hook, Hook: hook, Priority: raw}
	for _, a := range addresses {
		for _, protocol := range []string{"tcp", "udp"} {
			c.Untracked = append(c.Untracked, desired.Untracked{To: a, Protocol: protocol, Port: 53, Comment: "no connection is kept of questions to localdns"})
		}
	}
	return c
}

// Read is the table of a RulesFile.
func Read(rules []byte) (*desired.PacketFilter, error) {
	p := &desired.PacketFilter{}
	if err := json.Unmarshal(rules, p); err != nil {
		return nil, fmt.Errorf("read %s: %w", RulesFile, err)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", RulesFile, err)
	}
	return p, nil
}

// dropIn: each start of kubelet sets the table, and has iptables let packets be forwarded that
// no rule forbids, as published; a table that can't be set keeps kubelet from starting.
// Programs that do otherwise when they start come before.
func dropIn(s Settings) string {
	set := unitfile.Word(cmp.Or(s.Program, Program)) + " node firewall"
	if s.IPTables != "" {
		set += " --iptables " + unitfile.Word(s.IPTables)
	}
	return unitfile.Text(
		unitfile.In("Unit", "After", "nftables.service firewalld.service ufw.service docker.service"),
		unitfile.In("Service", "ExecStartPre", set))
}
