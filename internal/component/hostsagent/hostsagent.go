// Package hostsagent keeps the address of a private cluster's API server in /etc/hosts: a
// tag of the virtual machine names it, and the name servers of its network need not know
// the name.
package hostsagent

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths.
const (
	// Tag names the address, in any case; its name is the published one.
	Tag = "aksAPIServerIPAddress"
	// File has the address, in the part of it with the name Block.
	File  = "/etc/hosts"
	Block = "api-server"

	Unit  = "berth-private-hosts.service"
	Timer = "berth-private-hosts.timer"

	// UnitFile is there as long as the machine follows the tag.
	UnitFile = unitDir + Unit

	unitDir = "/etc/systemd/system/"
	// every is how often the tag is looked at, as published.
	every = "15s"
)

// Settings are what differs from node to node.
type Settings struct {
	// Name is the API server's.
	Name string
	// Address is its own; the zero one is not known yet.
	Address netip.Addr
	// Program is berth's own path; empty: packetfilter.Program.
	Program string
}

// Applies says whether a name is one that the published agent sees to: that of a private
// link.
func Applies(name string) bool { return strings.Contains(name, ".privatelink.") }

// Resources are the name's address, and the timer that keeps it. An entry of others for
// the name comes after it, where nobody looks any more. Of an address that is not known
// yet the block is there already: so the ledger has it, and whoever leaves takes it away.
func Resources(s Settings) []desired.Resource {
	service := plain(UnitFile, unitfile.Text(
		unitfile.In("Unit", "Description", "Keep the address of "+s.Name+" in "+File),
		unitfile.In("Service", "Type", "oneshot", "LogLevelMax", "notice",
			"ExecStart", unitfile.Word(cmp.Or(s.Program, packetfilter.Program))+" node hosts-agent "+s.Name)))
	timer := plain(unitDir+Timer, unitfile.Text(
		unitfile.In("Unit", "Description", "Look at the address of "+s.Name+" from time to time"),
		unitfile.In("Timer", "OnActiveSec", every, "OnUnitActiveSec", every, "AccuracySec", "1s"),
		unitfile.In("Install", "WantedBy", "timers.target")))
	unit := &desired.Unit{
		Base: desired.Base{After: []desired.ID{service.ID(), timer.ID()}}, Name: Timer,
		Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{UnitFile},
	}
	lines := "# " + Unit + " writes the address of " + s.Name + " here\n"
	if s.Address.IsValid() {
		lines = Lines(s.Address, s.Name)
	}
	return []desired.Resource{service, timer, unit, &desired.Block{Path: File, Name: Block, Lines: lines, First: true, Mode: 0o644}}
}

// Lines are what the block holds.
func Lines(address netip.Addr, name string) string { return address.String() + " " + name + "\n" }

// Address is what a tag's value or a line of the block says; the zero one where it says
// nothing of use.
func Address(text string) netip.Addr {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(fields[0])
	if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}
	}
	return a.Unmap()
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
