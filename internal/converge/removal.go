package converge

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// removals plans the end of the names that this owner put on the machine and no
// longer wants: deleted, or the original restored. What another owner still wants
// stays. What others consist of goes first: what else is wanted follows from what is left.
func (p *planner) removals(context.Context) error {
	names := p.ids(func(name string) bool { return ledger.IsPath(name) && p.v.CoversName(name) })
	for len(names) > 0 {
		wanted := p.wanted()
		gone := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return wanted[name] })
		if slices.ContainsFunc(gone, p.defines) {
			gone = slices.DeleteFunc(gone, func(name string) bool { return !p.defines(name) })
		}
		if len(gone) == 0 {
			return nil
		}
		for _, name := range slices.Backward(gone) {
			if err := p.v.RemovePath(name, p.v.Ledger.Entries[name]); err != nil {
				return err
			}
			p.decide() // a directory goes if all goes that is in it
		}
		p.v.NoteChanges()
		names = slices.DeleteFunc(names, func(name string) bool { _, is := slices.BinarySearch(gone, name); return is })
	}
	return nil
}

// ids are those of the ledger that this owner wants or wanted, in order.
func (p *planner) ids(of func(id string) bool) []string {
	var out []string
	for id, e := range p.v.Ledger.Entries {
		if e.Owns(p.v.State.Owner) && of(id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// removeLive plans the end of what is no name of the tree, for the kinds of a pass.
func (p *planner) removeLive(ctx context.Context, pass kind.Pass) error {
	for _, id := range p.ids(func(id string) bool { return !ledger.IsPath(id) }) {
		name, _, _ := strings.Cut(id, ":")
		k := p.v.Kinds[name]
		if k == nil || k.Pass() != pass || !p.v.CoversName(id) || p.speaksOf(id, name) {
			continue
		}
		r, ok := k.(kind.Remover)
		if !ok {
			continue
		}
		if err := p.removeOne(ctx, r, id, p.v.Ledger.Entries[id]); err != nil {
			return err
		}
	}
	return nil
}

// speaksOf says whether the state has a resource of a kind that an id of the ledger
// stands for.
func (p *planner) speaksOf(id, kindName string) bool {
	return p.v.State.Lookup(desired.ID(id)) != nil || slices.ContainsFunc(p.v.State.Resources, func(r desired.Resource) bool {
		return r.Kind() == kindName && slices.Contains(p.v.NamesOf(r), id)
	})
}

func (p *planner) removeOne(ctx context.Context, r kind.Remover, id string, e ledger.Entry) error {
	t := &kind.Task{ID: desired.ID(id), Base: &desired.Base{}, Record: kind.Record{Forget: []string{id}}}
	if len(e.Owners) > 1 { // nothing happens to it
		p.v.Add(&kind.Task{Record: kind.Record{Leaves: []string{id}}})
		return nil
	}
	if err := r.Remove(ctx, p.v, t, id, e); err != nil {
		return &ActionError{ID: t.ID, Verb: VerbRestore, Err: err}
	}
	p.v.Add(t)
	return nil
}

func (p *planner) defines(name string) bool {
	for _, k := range p.v.Kinds {
		if d, ok := k.(kind.Definer); ok && d.Defines(name) {
			return true
		}
	}
	return false
}

// wanted are all names that the state speaks of, and the directories above each. Of a directory
// that was there before berth a file in it asks for nothing.
func (p *planner) wanted() map[string]bool {
	wanted := make(map[string]bool, len(p.v.State.Resources))
	above := func(dir string) {
		for ; dir != "/" && dir != "." && !wanted[dir]; dir = path.Dir(dir) {
			wanted[dir] = !p.v.Ledger.Entries[dir].InPlace()
		}
	}
	add := func(name string) {
		wanted[name] = true
		above(path.Dir(name))
	}
	for _, r := range p.v.State.Resources {
		for _, name := range p.v.NamesOf(r) {
			add(name)
		}
		for _, dir := range p.v.DirsOf(r) {
			above(dir)
		}
	}
	for _, t := range p.v.Tasks() {
		for _, q := range t.Changes {
			if gone := q.Unclaimed && p.v.State.Lookup(t.ID) == nil; !q.Forget && !gone {
				add(q.Path)
			}
		}
	}
	return wanted
}
