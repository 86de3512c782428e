// Package file is the kind of regular files: managed, seed and transient ones.
package file

import (
	"context"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of files.
type Kind struct{}

var (
	_ kind.Follower  = Kind{}
	_ kind.Describer = Kind{}
)

// Name implements kind.Kind.
func (Kind) Name() string { return "file" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	return []string{v.Real(r.(*desired.File).Path)}
}

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	f := r.(*desired.File)
	q := &kind.Change{Type: ledger.File, Path: v.Real(f.Path), Content: f.Content, Seed: f.Life == desired.Seed,
		Attrs: host.Attributes{Mode: f.Mode.Perm(), UID: f.UID, GID: f.GID}}
	if e := v.Ledger.Entries[q.Path]; f.AnyMode && e.Applied.Type == ledger.File && e.Applied.Mode != 0 && len(e.Others(v.State.Owner)) > 0 {
		q.Attrs = host.Attributes{Mode: e.Applied.Mode, UID: e.Applied.UID, GID: e.Applied.GID}
	}
	if f.Life == desired.Transient && Ended(v, f) {
		return end(v, t, f, q.Path)
	}
	info, err := v.Described(q.Path)
	if err != nil {
		return err
	}
	if f.Life == desired.Seed && info != nil {
		return nil
	}
	return v.Want(t, q, info)
}

// Describes implements kind.Describer.
func (k Kind) Describes(v *kind.View, r desired.Resource) []string { return k.Names(v, r) }

// Follows implements kind.Follower: a transient file goes when what it waits for is in
// place.
func (Kind) Follows(r desired.Resource) []desired.ID {
	if f := r.(*desired.File); f.Until != "" {
		return []desired.ID{f.Until}
	}
	return nil
}

// Ended says whether a transient file's end has come: its resource is in place, or
// this plan puts it there.
func Ended(v *kind.View, f *desired.File) bool {
	t := v.Task(f.Until)
	return t != nil && len(t.Deferred) == 0 && !t.Withheld
}

// Needs implements kind.Needer.
func (Kind) Needs(_ *kind.View, r desired.Resource) []desired.ID {
	if f := r.(*desired.File); f.Life == desired.Transient {
		return []desired.ID{f.Until}
	}
	return nil
}

// Exempt implements kind.Exempter: a seed that is there, and a transient file that
// has ended, are not compared with the resource.
func (Kind) Exempt(v *kind.View, r desired.Resource) bool {
	f := r.(*desired.File)
	return f.Life == desired.Seed || f.Life == desired.Transient && Ended(v, f)
}

// end plans the deletion of a transient file.
func end(v *kind.View, t *kind.Task, f *desired.File, p string) error {
	info, err := v.Lstat(p)
	if err != nil || info == nil {
		return err
	}
	if e := v.Ledger.Entries[p]; len(e.Others(v.State.Owner)) > 0 {
		if e.Owns(v.State.Owner) {
			t.Leaves = append(t.Leaves, p) // the last to need it deletes it
		}
		return nil
	}
	q := &kind.Change{Type: ledger.Gone, Path: p, Forget: true}
	if err := v.MayChange(q, info); err != nil {
		return err
	}
	q.Foreign = false
	t.Changes = append(t.Changes, q)
	t.Act(kind.VerbDelete, "no longer needed: "+string(f.Until)+" is in place", kind.DisruptNone)
	return nil
}
