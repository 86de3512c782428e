// Package unit is the kind of systemd units. What a unit consists of, systemd
// says; what it will consist of when the plan is done follows from the plan.
package unit

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

// Kind is the kind of units.
type Kind struct{}

var (
	_ kind.Remover   = Kind{}
	_ kind.Closer    = Kind{}
	_ kind.Definer   = Kind{}
	_ kind.Runner    = Kind{}
	_ kind.Inheriter = Kind{}
	_ kind.Barrer    = Kind{}
)

// Name implements kind.Kind.
func (Kind) Name() string { return "unit" }

// Pass implements kind.Kind: what a unit needs depends on what happens to its
// files.
func (Kind) Pass() kind.Pass { return kind.Units }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	u := r.(*desired.Unit)
	out := append(takenFor(v, u), string(u.ID()))
	if u.Enablement == desired.AnyEnablement {
		return out
	}
	e := enablement{v: v, u: u, t: &kind.Task{}, name: u.Name}
	fragment, err := e.files().search(u.Name, false)
	if err != nil {
		return out
	}
	links, err := e.links(fragment)
	if err != nil {
		return out
	}
	for _, l := range links {
		out = append(out, l.Path)
	}
	return out
}

// Defines implements kind.Definer: what enables a unit follows from what is left
// of its definition.
func (Kind) Defines(name string) bool {
	p, ok := partOf(name)
	return ok && p.role != wantedLink
}

// Unit implements kind.Runner.
func (Kind) Unit(id desired.ID) string { return strings.TrimPrefix(string(id), "unit:") }

// Runs implements kind.Runner.
func (Kind) Runs(r desired.Resource) bool { return r.(*desired.Unit).Activation == desired.Started }

// Needed implements kind.Runner.
func (k Kind) Needed(r desired.Resource) bool { return k.Runs(r) && !r.(*desired.Unit).Optional }

// Before implements kind.Inheriter. A unit whose definition is inherited did not run
// before that; of others nobody knows, so that they stay.
func (k Kind) Before(r desired.Resource, names []string) (was string, known bool) {
	defined := slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == r.(*desired.Unit).Name && k.Defines(name) })
	return "inactive", defined
}

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

// Observe implements kind.Kind.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	p, err := newPlanner(ctx, v, t, r.(*desired.Unit))
	if err != nil {
		return err
	}
	e := enablement{v: v, u: p.u, t: t, name: p.unit.name}
	for _, step := range []func() error{p.claim, e.unmask, func() error { return e.plan(p.unit.in.definition.fragment) }, p.activation, p.reread} {
		if err := step(); err != nil {
			return err
		}
	}
	t.Inputs = slices.Concat(p.unit.in.started(), p.unit.in.reloads)
	return nil
}

// Remove implements kind.Remover: what ran before berth runs, with what it ran
// with then, and what did not stops.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	_, activation, _ := strings.Cut(e.Applied.Value, "/")
	name := strings.TrimPrefix(id, "unit:")
	if v.Offline || unitname.IsTemplate(name) || activation == "" || e.Was == nil {
		return nil
	}
	p, err := newPlanner(ctx, v, t, &desired.Unit{Name: name, Activation: desired.Started})
	if err != nil {
		return err
	}
	if e.Was.Value != "active" {
		p.stop("was not running before berth")
		return nil
	}
	if !p.definedHere() {
		return p.giveBack(desired.Activation(activation))
	}
	t.Forget = nil
	if e.Owners[v.State.Owner] == unasked && !isOwed(v, id) {
		return nil
	}
	t.Claims = append(t.Claims, kind.Claim{ID: id, Asked: unasked, Applied: e.Applied.Value})
	return p.giveBack(desired.Activation(activation))
}

// unasked is what a contract wants of a unit of which it says nothing any more.
const unasked = "/"

// isOwed says whether a run that was cut off was about to change what the ledger says of an id:
// what else it was to do may not be done.
func isOwed(v *kind.View, id string) bool {
	if v.Ledger.Owed == nil {
		return false
	}
	_, owed := v.Ledger.Owed.Claims[id]
	return owed
}

// definedHere says whether a definition is in force that this contract asks for. As long as it
// is, the ledger keeps what the unit was before berth: when it goes, that is given back.
func (p *planner) definedHere() bool {
	at := p.v.Real(p.unit.in.definition.fragment)
	e := p.v.Ledger.Entries[at]
	return p.v.State.Lookup(desired.FileID(at)) != nil && !e.Adopted && !e.InPlace()
}

// asked is what a contract wants of a unit: "enabled/started".
func asked(u *desired.Unit) string { return string(u.Enablement) + "/" + string(u.Activation) }

// agree says whether two wishes can both come true.
func agree(a, b string) bool {
	e1, a1, _ := strings.Cut(a, "/")
	e2, a2, _ := strings.Cut(b, "/")
	return (e1 == e2 || e1 == "" || e2 == "") && (a1 == a2 || a1 == "" || a2 == "")
}

// together is what is in force of a unit when one more wish has come true: who says nothing of
// its activation leaves what another, or an earlier document, has made of it.
func together(before, asked string) string {
	e1, a1, _ := strings.Cut(before, "/")
	e2, a2, _ := strings.Cut(asked, "/")
	return cmp.Or(e2, e1) + "/" + cmp.Or(a2, a1)
}
