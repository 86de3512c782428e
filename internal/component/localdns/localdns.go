// Package localdns is a name server on the node, CoreDNS, that keeps answers: for the
// machine itself, and for pods that the cluster sends there.
package localdns

import (
	"fmt"
	"net/netip"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths, as published where somebody else may know them.
const (
	Unit  = "localdns.service"
	Slice = "localdns.slice"
	// Program is part of the image.
	Program  = "/opt/azure/containers/localdns/binary/coredns"
	Corefile = "/opt/azure/containers/localdns/localdns.corefile"
	// RunDir goes when the service stops; Running in it is what the server reads: the
	// Corefile with the machine's own name servers.
	RunDir  = "/run/localdns"
	Running = RunDir + "/corefile"
	// Link carries the two addresses.
	Link = "localdns"
	// HealthName is a name that the server itself answers.
	HealthName = "health-check.localdns.local"
	// ReadyPort is where the server tells by HTTP that it is ready.
	ReadyPort = 8181

	unitDir = "/etc/systemd/system/"
)

// The addresses that are answered at: the machine's own queries, and those of its pods.
var (
	NodeAddress = netip.MustParseAddr("169.254.10.10")
	PodAddress  = netip.MustParseAddr("169.254.10.11")
)

// Addresses are both.
func Addresses() []netip.Addr { return []netip.Addr{NodeAddress, PodAddress} }

// Settings are what differs from node to node.
type Settings struct {
	// Node and Pods are the zones answered at either address, by name.
	Node, Pods map[string]Zone
	// ClusterDNS is the address of the cluster's name servers.
	ClusterDNS string
	// MilliCPU and MegaBytes bound what the server may use.
	MilliCPU, MegaBytes int32
	// Hosts: names of the root zone are looked up in HostsFile first, which is filled
	// with the addresses of Names every Refresh seconds; 0 is 15 minutes.
	Hosts   bool
	Names   []string
	Refresh int32
	// Berth is the path of berth's program.
	Berth string
	// After is what comes before the service starts.
	After []desired.ID
}

// Resources are the server's files, and its service after all of them.
func Resources(s Settings) []desired.Resource {
	program := &desired.Artifact{Name: "localdns", Files: []desired.ArtifactFile{{Path: Program, Mode: 0o755}}}
	files := []desired.Resource{
		plain(Corefile, s.text()),
		plain(unitDir+Slice, s.slice()),
		plain(unitDir+Unit, s.service()),
	}
	if s.Hosts {
		files = append(files, s.hosts()...)
	}
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{Corefile, Program}}
	u.After = append(u.After, s.After...)
	for _, r := range append(files, program) {
		u.After = append(u.After, r.ID())
	}
	return append(files, program, u)
}

func plain(path, text string) *desired.File {
	return &desired.File{Path: path, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}

func (s Settings) slice() string {
	return unitfile.Text(
		unitfile.In("Unit", "Description", "Name server of this node", "DefaultDependencies", "no", "Before", "slices.target",
			"Requires", "system.slice", "After", "system.slice"),
		unitfile.In("Slice", "MemoryMax", fmt.Sprintf("%dM", s.MegaBytes), "CPUQuota", fmt.Sprintf("%.1f%%", float64(s.MilliCPU)/10)))
}

// service: the machine asks this server only as long as it answers. Pods ask nobody else:
// a start that fails is tried again without end, as kubelet's. Before the network is there nobody is known to forward to. What runs before
// and after it restarts the machine's resolver: ordered after that it would wait for
// itself at each stop; network.target is after it at each boot.
func (s Settings) service() string {
	verb, wants := unitfile.Word(s.Berth)+" node localdns ", "network-online.target"
	if s.Hosts {
		wants += " " + HostsUnit
	}
	return unitfile.Text(
		unitfile.In("Unit", "Description", "Name server of this node (CoreDNS)", "Wants", wants,
			"After", "network.target network-online.target", "Before", kubelet.Unit+" "+containerd.Unit,
			"StartLimitIntervalSec", "0"),
		unitfile.In("Service", "Type", "exec", "Slice", Slice, "RuntimeDirectory", "localdns", "RuntimeDirectoryPreserve", "restart",
			"ExecStartPre", verb+"prepare", "ExecStart", Program+" -conf "+Running,
			"ExecStartPost", verb+"announce", "ExecStopPost", verb+"withdraw",
			"Restart", "on-failure", "RestartSec", "2", "TimeoutStartSec", "90", "TimeoutStopSec", "30"),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}
