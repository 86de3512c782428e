// Package swap is the kind of files that hold a swap area. They are built under a
// temporary name and marked as berth's: what others left at the path is no target for
// one. Units use them; one that goes is no longer in use.
package swap

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// Kind is the kind of swap files.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "swap" }

// Pass implements kind.Kind: the unit may have to start anew.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// InContainer is where systemd says that the machine is a container, whose swap is
// its host's.
const InContainer = "/run/systemd/container"

// ErrContainer is a swap file for a machine that can't have one.
var ErrContainer = errors.New("this machine is a container: swap belongs to the machine that it runs on")

// ErrTaken is something at the path that berth did not put there.
var ErrTaken = errors.New("there is something else at the path, which is not overwritten")

// Observe implements kind.Kind.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	s := r.(*desired.Swap)
	if v.Offline {
		t.Postpone(kind.VerbCreate, "swap files are made on first boot")
		return nil
	}
	container, err := v.Lstat(InContainer)
	if err != nil {
		return err
	}
	if container != nil {
		t.Block(kind.VerbCreate, "swap is not the machine's own", ErrContainer.Error(), &Error{Path: s.Path, Doing: "make", Err: ErrContainer})
		return nil
	}
	p := v.Real(s.Path)
	info, err := v.Lstat(p)
	if err != nil {
		return err
	}
	a, isArea, err := look(v.Host, p, info)
	if err != nil {
		return err
	}
	was := ""
	if info != nil {
		was = "there"
	}
	if err := v.ClaimLive(t, string(s.ID()), strconv.FormatInt(s.Bytes, 10), was, kind.Equal); err != nil {
		return err
	}
	return compare(ctx, v, t, s, &seen{p, info, a, isArea})
}

// seen is what there is at a path.
type seen struct {
	path   string
	info   *host.Info
	area   area
	isArea bool
}

func compare(ctx context.Context, v *kind.View, t *kind.Task, s *desired.Swap, have *seen) error {
	switch {
	case have.info == nil:
		create(v, t, s, have, kind.VerbCreate, "absent")
		return nil
	case !have.isArea, !have.area.ours && !have.area.fits(s.Bytes, have.info):
		t.Block(kind.VerbCreate, "is not berth's", ErrTaken.Error(), &Error{Path: s.Path, Doing: "make", Err: ErrTaken})
		return nil
	case !have.area.fits(s.Bytes, have.info):
		create(v, t, s, have, kind.VerbUpdate, fmt.Sprintf("has %d bytes, want %d", have.info.Size, s.Bytes))
		return replace(ctx, v, t, s, have)
	}
	q := &kind.Change{Type: ledger.Attributes, Path: have.path, Attrs: private, Seen: have.info, Unclaimed: true}
	if reason := v.AttributeDifference(have.path, have.info, private); reason != "" {
		t.Changes = append(t.Changes, q)
		t.Act(kind.VerbUpdate, reason, kind.DisruptNone)
	}
	return nil
}

// private: what was in memory is nobody's to read.
var private = host.Attributes{Mode: 0o600}

// create plans the file. The unit that uses it starts after that.
func create(v *kind.View, t *kind.Task, s *desired.Swap, have *seen, verb kind.Verb, reason string) {
	t.Changes = append(t.Changes, &kind.Change{Type: ledger.File, Path: have.path, Attrs: private, Prepared: true, Unclaimed: true, Seen: have.info})
	t.Act(verb, reason, kind.DisruptNone)
	t.Stage = func(ctx context.Context, _ *kind.Task) error { return Stage(ctx, v.Host, have.path, s.Bytes) }
	t.Demand = kind.Demand{Unit: desired.UnitID(Unit(s.Path)), Reason: s.Path + " is made anew"}
}

// replace makes the new file beside the old one. Where the disk has no room for both, the
// old one goes first, when nothing uses it any more: it holds nothing that is to be kept.
func replace(ctx context.Context, v *kind.View, t *kind.Task, s *desired.Swap, have *seen) error {
	q, small := t.Changes[len(t.Changes)-1], false
	t.Stage = func(ctx context.Context, _ *kind.Task) error {
		err := Stage(ctx, v.Host, have.path, s.Bytes)
		if small = errors.Is(err, ErrNoRoom); small {
			return nil
		}
		return err
	}
	if err := stopFirst(ctx, v, t, s.Path); err != nil {
		return err
	}
	stop := t.Before
	t.Before = func(ctx context.Context) error {
		if stop != nil {
			if err := stop(ctx); err != nil {
				return err
			}
		}
		if !small {
			return nil
		}
		return exchange(ctx, v.Host, q, s.Bytes, have)
	}
	return nil
}

// exchange makes a swap file where an old one was. One that does not come about leaves the
// old size.
func exchange(ctx context.Context, h host.Host, q *kind.Change, size int64, have *seen) error {
	now, err := ledger.Lstat(h, q.Path)
	if err != nil || !ledger.Same(now, q.Seen) {
		return err // the executor sees that it changed
	}
	if err := h.Remove(q.Path); err != nil {
		return err
	}
	q.Seen = nil
	err = Stage(ctx, h, q.Path, size)
	if err == nil {
		return nil
	}
	if again := Stage(ctx, h, q.Path, have.info.Size); again != nil {
		return errors.Join(err, again)
	}
	return errors.Join(err, host.Commit(h, q.Path), h.SyncDir(path.Dir(q.Path)))
}

// Unit is the name that systemd has for the use of a file (systemd.swap(5)).
func Unit(p string) string { return unitname.OfPath(p) + ".swap" }

// stopFirst ends the use of a file before it loses its name: the kernel takes no name of
// one away that is in use.
func stopFirst(ctx context.Context, v *kind.View, t *kind.Task, file string) error {
	unit := Unit(file)
	st, err := v.Host.Unit(ctx, unit)
	if err != nil || st.ActiveState != "active" {
		return err
	}
	t.Actions[len(t.Actions)-1].Disruption = kind.DisruptRestart
	t.Before = func(ctx context.Context) error {
		if err := v.Host.StopUnit(ctx, unit); err != nil {
			return &Error{Path: file, Doing: "stop the use of", Err: err}
		}
		return nil
	}
	return nil
}

// Remove implements kind.Remover: what berth made goes, whoever uses it.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	file := strings.TrimPrefix(id, "swap:")
	p := v.Real(file)
	info, err := v.Lstat(p)
	if err != nil || info == nil {
		return err
	}
	a, isArea, err := look(v.Host, p, info)
	if err != nil {
		return err
	}
	if !isArea || !a.ours {
		if e.Was == nil || e.Was.Value == "" {
			t.Kept = append(t.Kept, file+" is no longer wanted and is kept: it is not the swap file that berth made")
		}
		return nil
	}
	t.Changes = append(t.Changes, &kind.Change{Type: ledger.Gone, Path: p, Seen: info, Unclaimed: true, Forget: true})
	t.Act(kind.VerbDelete, "no longer wanted", kind.DisruptNone)
	if v.Offline { // nothing of another root is in use
		return nil
	}
	return stopFirst(ctx, v, t, file)
}
