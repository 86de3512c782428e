// Package streaming lets containers start before their image has come as a whole: the
// services of the image that read layers from the registry block by block.
package streaming

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// units have the published names; the image brings them.
var units = []string{"acr-mirror.service", "overlaybd-tcmu.service", "overlaybd-snapshotter.service"}

// Units are the names of the image's services.
func Units() []string { return slices.Clone(units) }

// SetupUnit runs the program of the image that has containerd ask registries through the
// mirror. That it is active says that the program, as it is now, ended well since boot.
const SetupUnit = "berth-artifact-streaming.service"

const setupFile = "/etc/systemd/system/" + SetupUnit

// setups are the programs of images, the newer one first, with their published arguments.
var setups = []struct{ program, arguments string }{
	{"/opt/acr/tools/mirror/setup.sh", "aks"},
	{"/opt/acr/bin/acr-config", "--enable-containerd azurecr.io"},
}

// Programs are where an image may have it; the first that can be executed counts.
func Programs() []string {
	var out []string
	for _, s := range setups {
		out = append(out, s.program)
	}
	return out
}

// IsUnit says whether a unit is one of them, or SetupUnit.
func IsUnit(name string) bool { return name == SetupUnit || slices.Contains(units, name) }

// Settings are what differs from machine to machine.
type Settings struct {
	// Setup is the one of Programs that the image has; "" for none.
	Setup string
	// After is what the services come after, Triggers are files whose change starts them anew.
	After    []desired.ID
	Triggers []string
}

// Resources are the services, and what the image's program does once they answer.
func Resources(s Settings) []desired.Resource {
	var out []desired.Resource
	after := slices.Clone(s.After)
	for _, name := range units {
		u := &desired.Unit{Base: desired.Base{After: s.After}, Name: name, Enablement: desired.Enabled, Activation: desired.Started, Triggers: s.Triggers}
		out, after = append(out, u), append(after, u.ID())
	}
	return append(out, setup(s.Setup, after)...)
}

// setup is the program in a unit: what it writes is the image's own matter, read by
// containerd with each pull, and stays when the unit goes.
func setup(program string, after []desired.ID) []desired.Resource {
	for _, s := range setups {
		if s.program != program {
			continue
		}
		file := &desired.File{Path: setupFile, Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
			unitfile.In("Unit", "Description", "Have containerd ask registries through the mirror of this node",
				"After", containerd.Unit+" "+strings.Join(units, " ")),
			unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes", "ExecStart", s.program+" "+s.arguments, "TimeoutStartSec", "120"),
			unitfile.In("Install", "WantedBy", "multi-user.target")))}
		return []desired.Resource{file, &desired.Unit{Base: desired.Base{After: append(after, file.ID())}, Name: SetupUnit,
			Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{s.program}}}
	}
	return nil
}
