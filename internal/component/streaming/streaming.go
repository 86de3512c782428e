// Package streaming lets containers start before their image has come as a whole: the
// services of the image that read layers from the registry block by block.
package streaming

import (
	"slices"

	"github.com/berth-dev/berth/internal/desired"
)

// units have the published names; the image brings them.
var units = []string{"acr-mirror.service", "overlaybd-tcmu.service", "overlaybd-snapshotter.service"}

// Units are their names.
func Units() []string { return slices.Clone(units) }

// IsUnit says whether a unit is one of them.
func IsUnit(name string) bool { return slices.Contains(units, name) }

// Resources are the services, each after what is given, and started anew where a file of
// triggers changes.
func Resources(after []desired.ID, triggers []string) []desired.Resource {
	var out []desired.Resource
	for _, name := range units {
		out = append(out, &desired.Unit{Base: desired.Base{After: after}, Name: name, Enablement: desired.Enabled, Activation: desired.Started,
			Triggers: triggers})
	}
	return out
}
