// Package tempdisk has kubelet keep its data on the temporary disk of a virtual machine:
// what kubelet says of the node's room is then about the disk that pods write to.
package tempdisk

import (
	"cmp"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths, as published.
const (
	Unit = "bind-mount.service"
	// Disk is where images mount the disk, Dir what stands on it in place of Target.
	Disk   = "/mnt"
	Dir    = Disk + "/aks/kubelet"
	Target = "/var/lib/kubelet"
	// Sentinel says that what is in Dir belongs to this system: scripts of the image that
	// did the same write it.
	Sentinel = "/opt/azure/containers/bind-sentinel"

	unitFile = "/etc/systemd/system/" + Unit
	dropIn   = kubelet.DropInDir + "/10-bindmount.conf"
)

// Settings are what differs from node to node.
type Settings struct {
	// Program is berth's own path; empty: packetfilter.Program.
	Program string
	// Patience is how long a disk that is not mounted yet is waited for.
	Patience time.Duration
}

// Check is that the disk is mounted: without it nothing is begun.
func Check(s Settings) *desired.Check {
	return &desired.Check{Name: desired.CheckMount, Mount: Disk, Timeout: s.Patience}
}

// Files are the service and what makes kubelet wait for it.
func Files(s Settings) []desired.Resource {
	verb := unitfile.Word(cmp.Or(s.Program, packetfilter.Program)) + " node temp-disk"
	return []desired.Resource{
		plain(unitFile, unitfile.Text(
			unitfile.In("Unit", "Description", "Have kubelet's data on the temporary disk", "RequiresMountsFor", Disk, "Before", kubelet.Unit),
			unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes", "TimeoutSec", "10min",
				"ExecStart", verb, "ExecStop", verb+" --stop"),
			unitfile.In("Install", "WantedBy", "multi-user.target"))),
		plain(dropIn, unitfile.Text(unitfile.In("Unit", "Requires", Unit, "After", Unit))),
	}
}

// Service is the service after its files and all that is written to Target: it takes
// that along. A stop gives it back; what pods use stays mounted then, and without the
// service the next boot mounts nothing.
func Service(after []desired.ID) *desired.Unit {
	return &desired.Unit{Base: desired.Base{After: after}, Name: Unit, Enablement: desired.Enabled, Activation: desired.Started}
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
