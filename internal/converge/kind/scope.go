package kind

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Scope is the part of a state that is looked at.
type Scope struct {
	State *desired.State
	// covered are the resources, and what of the ledger; nil is all.
	covered map[desired.ID]bool
}

// Covered are the resources of the state that are looked at.
func (s *Scope) Covered() []desired.Resource {
	if s.covered == nil {
		return s.State.Resources
	}
	var out []desired.Resource
	for _, r := range s.State.Resources {
		if s.covered[r.ID()] {
			out = append(out, r)
		}
	}
	return out
}

// CoversName says whether an id of the ledger is looked at: a path is, under each id
// that a resource there would have.
func (s *Scope) CoversName(name string) bool {
	if s.covered == nil || s.covered[desired.ID(name)] {
		return true
	}
	return strings.HasPrefix(name, "/") && (s.covered[desired.FileID(name)] || s.covered[desired.DirectoryID(name)] || s.covered[desired.LinkID(name)])
}

// Narrow makes a view one of some resources, with those without which they can't
// be compared, and of some names that the state has no more. It comes first.
func (v *View) Narrow(ids []desired.ID) {
	v.covered = map[desired.ID]bool{}
	for _, id := range ids {
		v.cover(id)
	}
}

func (v *View) cover(id desired.ID) {
	if v.covered[id] {
		return
	}
	v.covered[id] = true
	r := v.State.Lookup(id)
	if r == nil {
		return
	}
	if n, ok := v.Kinds[r.Kind()].(Needer); ok {
		for _, needed := range n.Needs(v, r) {
			v.cover(needed)
		}
	}
	for _, p := range r.FilePaths() { // a directory that is missing is made as the state has it
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if v.State.Lookup(desired.DirectoryID(dir)) != nil {
				v.cover(desired.DirectoryID(dir))
			}
		}
	}
}
