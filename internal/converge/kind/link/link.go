// Package link is the kind of symbolic links.
package link

import (
	"context"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of links.
type Kind struct{}

// Name implements kind.Kind.
func (Kind) Name() string { return "link" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	return []string{v.Real(r.(*desired.Link).Path)}
}

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	l := r.(*desired.Link)
	return v.WantLink(t, &kind.Change{Type: ledger.Link, Path: v.Real(l.Path), Target: l.Target}, kind.VerbUpdate)
}
