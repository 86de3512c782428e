// Package check is the kind of conditions that must hold before the machine is
// changed. A check never changes anything: its stage verifies, every time that
// the condition is not known from before.
package check

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of checks.
type Kind struct{}

// Name implements kind.Kind.
func (Kind) Name() string { return "check" }

// Pass implements kind.Kind: what a check is needless for may be a file.
func (Kind) Pass() kind.Pass { return kind.Units }

// Names implements kind.Kind.
func (Kind) Names(*kind.View, desired.Resource) []string { return nil }

// Observe implements kind.Kind. Before the units start nobody answers yet.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	if v.Offline {
		t.Postpone(kind.VerbCheck, "checked on first boot")
		return nil
	}
	if v.Booting || needless(v, r.(*desired.Check).Unless) {
		return nil
	}
	t.Waits = true
	t.Stage = func(ctx context.Context, _ *kind.Task) error {
		if v.Prober == nil {
			return kind.ErrNoProvider
		}
		return v.Prober.Probe(ctx, r.(*desired.Check))
	}
	return nil
}

// needless says whether a machine had a resource in an earlier run, and keeps it or
// gets it back without asking anybody.
func needless(v *kind.View, id desired.ID) bool {
	r, t := v.State.Lookup(id), v.Task(id)
	if r == nil || t == nil {
		return false
	}
	known := slices.ContainsFunc(v.NamesOf(r), func(name string) bool { return v.Ledger.Entries[name].Owns(v.State.Owner) })
	issued := slices.ContainsFunc(t.Actions, func(a kind.Action) bool { return a.Verb == kind.VerbIssue })
	return known && !issued
}
