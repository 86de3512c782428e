// Package check is the kind of conditions that must hold before the machine is
// changed. A check never changes anything: its stage verifies, every time.
package check

import (
	"context"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of checks.
type Kind struct{}

// Name implements kind.Kind.
func (Kind) Name() string { return "check" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(*kind.View, desired.Resource) []string { return nil }

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	if v.Offline {
		t.Postpone(kind.VerbCheck, "checked on first boot")
		return nil
	}
	t.Stage = func(ctx context.Context, _ *kind.Task) error {
		if v.Prober == nil {
			return kind.ErrNoProvider
		}
		return v.Prober.Probe(ctx, r.(*desired.Check))
	}
	return nil
}
