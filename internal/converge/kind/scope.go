package kind

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

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
	if n, ok := v.kinds[r.Kind()].(Needer); ok {
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

// Covered are the resources of the state that are looked at.
func (v *View) Covered() []desired.Resource {
	if v.covered == nil {
		return v.State.Resources
	}
	var out []desired.Resource
	for _, r := range v.State.Resources {
		if v.covered[r.ID()] {
			out = append(out, r)
		}
	}
	return out
}

// CoversName says whether an id of the ledger is looked at: a path is, under each id
// that a resource there would have.
func (v *View) CoversName(name string) bool {
	if v.covered == nil || v.covered[desired.ID(name)] {
		return true
	}
	return strings.HasPrefix(name, "/") && (v.covered[desired.FileID(name)] || v.covered[desired.DirectoryID(name)] || v.covered[desired.LinkID(name)])
}

// Withheld says that a path stays as somebody else made it: nothing follows from it.
func (v *View) Withheld(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.withheld[path]
}

// Withhold takes back what a task planned.
func (v *View) Withhold(t *Task, report bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, q := range t.Changes {
		delete(v.content, q.Path)
		delete(v.inDir[path.Dir(q.Path)], q.Path)
		delete(v.removed, q.Path)
		v.withheld[q.Path] = true
	}
	for _, by := range v.demanded {
		delete(by, t)
	}
	t.Withhold(report)
}
