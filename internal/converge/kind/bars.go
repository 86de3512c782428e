package kind

import (
	"slices"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Barrer is a kind of which some resources can't be what is wanted while certain things stand
// at certain names: a mask, to a unit.
type Barrer interface {
	// Bars says whether an original that came back at a name would be in the way of r.
	Bars(r desired.Resource, name string, was *ledger.Standing) bool
}

// bars says whether an original would be in the way of what the state wants.
func (v *View) bars(name string, was *ledger.Standing) bool {
	return slices.ContainsFunc(v.State.Resources, func(r desired.Resource) bool {
		k, ok := v.Kinds[r.Kind()].(Barrer)
		return ok && k.Bars(r, name, was)
	})
}
