// Package mount is the kind of mounted file systems.
package mount

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of mounts.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "mount" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	return []string{v.Real(r.(*desired.Mount).Target), string(r.ID())}
}

// Observe implements kind.Kind. What others mounted on the target is not covered.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	m := r.(*desired.Mount)
	if v.Offline {
		t.Postpone(kind.VerbMount, "mounted on first boot")
		return nil
	}
	have, err := on(ctx, v.Host, v.Real(m.Target))
	if err != nil {
		return err
	}
	if have != nil && (have.Source != m.Source || have.Type != m.FSType) {
		err := &Error{Target: m.Target, Err: fmt.Errorf("there is %s of type %s already", have.Source, have.Type)}
		t.Block(kind.VerbMount, "something else is mounted", "what others mounted is not covered", err)
		return nil
	}
	was := "mounted"
	if have == nil {
		was = ""
		t.Act(kind.VerbMount, "not mounted", kind.DisruptNone)
		t.Live = func(ctx context.Context) error { return mount(ctx, v, m) }
	} else {
		options(v, t, m, have)
	}
	return v.ClaimLive(t, string(m.ID()), asked(m), was, kind.Equal)
}

// asked is what a contract wants to have mounted.
func asked(m *desired.Mount) string {
	if len(m.Options) == 0 {
		return m.FSType + " " + m.Source
	}
	return m.FSType + " " + m.Source + " " + strings.Join(m.Options, ",")
}

// options plans that what berth mounted with other options is mounted anew. What others
// mounted so is left alone.
func options(v *kind.View, t *kind.Task, m *desired.Mount, have *host.Mount) {
	e := v.Ledger.Entries[string(m.ID())]
	ours := e.Was != nil && e.Was.Value == ""
	reason := lacks(m.Options, have.Options)
	if ours && reason == "" {
		reason = exceeds(m.Options, have.Options)
	}
	if reason == "" {
		return
	}
	if !ours {
		err := &Error{Target: m.Target, Err: fmt.Errorf("%s is %s", have.Source, reason)}
		t.Block(kind.VerbMount, reason, "what others mounted is not changed", err)
		return
	}
	t.Act(kind.VerbUnmount, reason, kind.DisruptNone)
	t.Act(kind.VerbMount, reason, kind.DisruptNone)
	t.Before = func(ctx context.Context) error { return unmount(ctx, v, v.Real(m.Target)) }
	t.Live = func(ctx context.Context) error { return mount(ctx, v, m) }
}

// Remove implements kind.Remover: what berth mounted is unmounted.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	target := v.Real(strings.TrimPrefix(id, "mount:"))
	if v.Offline || e.Was == nil || e.Was.Value != "" {
		return nil
	}
	have, err := on(ctx, v.Host, target)
	if err != nil || have == nil {
		return err
	}
	is := have.Type + " " + have.Source
	if !slices.ContainsFunc(e.Values(), func(set string) bool { return set == is || strings.HasPrefix(set, is+" ") }) {
		t.Kept = append(t.Kept, target+" is no longer wanted and is kept: "+have.Source+" is mounted there")
		return nil
	}
	v.Uncover(target)
	t.Act(kind.VerbUnmount, "no longer wanted", kind.DisruptNone)
	t.Before = func(ctx context.Context) error { return unmount(ctx, v, target) }
	return nil
}

func unmount(ctx context.Context, v *kind.View, target string) error {
	if err := v.Host.Unmount(ctx, target); err != nil {
		return &Error{Target: target, Err: err}
	}
	return nil
}

// on is what is mounted on a target, nil for nothing.
func on(ctx context.Context, h host.Mounter, target string) (*host.Mount, error) {
	all, err := h.Mounts(ctx)
	if err != nil {
		return nil, err
	}
	var last *host.Mount
	for _, m := range all {
		if m.Target == target {
			last = &m
		}
	}
	return last, nil
}

func mount(ctx context.Context, v *kind.View, m *desired.Mount) error {
	err := v.Host.Mount(ctx, host.Mount{Source: m.Source, Target: v.Real(m.Target), Type: m.FSType, Options: m.Options})
	if err == nil {
		err = dress(v, m)
	}
	if err != nil {
		return &Error{Target: m.Target, Err: err}
	}
	return nil
}

// dress gives the root of what was mounted the mode and owner of the directory that the state
// wants at the target: what is mounted there is what everybody sees of it.
func dress(v *kind.View, m *desired.Mount) error {
	d, ok := v.State.Lookup(desired.DirectoryID(m.Target)).(*desired.Directory)
	if !ok {
		return nil
	}
	at := v.Real(m.Target)
	info, err := v.Host.Lstat(at)
	if err != nil || ledger.AttributeDifference(&info, d.Mode.Perm(), d.UID, d.GID) == "" || kind.Modeless(m.FSType) {
		return err
	}
	if err := v.Host.Chown(at, d.UID, d.GID); err != nil {
		return err
	}
	if err := v.Host.Chmod(at, d.Mode.Perm()); err != nil {
		return err
	}
	return v.Host.SyncDir(at)
}

// Error is a file system that could not be mounted or unmounted.
type Error struct {
	Target string
	Err    error
}

// Error names the target.
func (e *Error) Error() string { return fmt.Sprintf("mount on %s: %v", e.Target, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
