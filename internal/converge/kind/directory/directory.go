// Package directory is the kind of directories with mode and owner.
package directory

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of directories.
type Kind struct{}

var _ kind.Asker = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "directory" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	return []string{v.Real(r.(*desired.Directory).Path)}
}

// Asked implements kind.Asker: who has a file in a directory is its owner, too.
func (Kind) Asked(r desired.Resource) string {
	d := r.(*desired.Directory)
	return fmt.Sprintf("%04o %d:%d", d.Mode.Perm(), d.UID, d.GID)
}

// Observe implements kind.Kind. What stands in the way is looked at when the plan
// is complete: it may go in it.
func (k Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	d := r.(*desired.Directory)
	q := &kind.Change{Type: ledger.Directory, Path: v.Real(d.Path), Attrs: host.Attributes{Mode: d.Mode.Perm(), UID: d.UID, GID: d.GID}, Asked: k.Asked(d)}
	info, err := v.Lstat(q.Path)
	if err != nil {
		return err
	}
	verb, reason := kind.VerbUpdate, ""
	switch {
	case info == nil:
		verb, reason = kind.VerbCreate, "absent"
	case !info.Mode.IsDir():
		reason = "is " + ledger.DescribeType(v.Host, q.Path, info) + ", want a directory"
	default:
		reason = v.AttributeDifference(q.Path, info, q.Attrs)
	}
	if reason == "" {
		return nil
	}
	return v.Take(t, q, info, verb, reason)
}
