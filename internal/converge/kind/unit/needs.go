package unit

import (
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// Needs implements kind.Needer: what a unit reads when it starts decides whether it
// starts anew.
func (Kind) Needs(v *kind.View, r desired.Resource) []desired.ID {
	u := r.(*desired.Unit)
	var out []desired.ID
	for _, other := range v.State.Resources {
		files, _ := v.InputsOf(other.ID())
		reads := slices.ContainsFunc(other.FilePaths(), func(at string) bool {
			p, ok := partOf(at)
			return ok && p.concerns(u.Name) || slices.Contains(u.Triggers, at) || slices.Contains(u.ReloadTriggers, at)
		})
		if reads || len(files) > 0 && slices.Contains(u.After, other.ID()) {
			out = append(out, other.ID())
		}
	}
	return out
}
