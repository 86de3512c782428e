// Package sysfs is the kind of attributes of the kernel that are a choice of words.
// What sets one at boot is a file.
package sysfs

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

// Kind is the kind of attributes.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "sysfs" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind. What this kernel does not offer is refused before
// anything changes.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	s := r.(*desired.Sysfs)
	if v.Offline {
		t.Postpone(kind.VerbSet, "attributes of the kernel are set on first boot")
		return nil
	}
	text, known, err := v.ReadFile(s.Path)
	if err != nil {
		return err
	}
	live, offered := choice(string(text))
	if why := impossible(known, s.Value, offered); why != "" {
		t.Block(kind.VerbSet, "want "+s.Value, why, &Error{Path: s.Path, Value: s.Value, Err: fmt.Errorf("%s", why)})
		return nil
	}
	if err := v.ClaimLive(t, string(s.ID()), s.Value, live, kind.Equal); err != nil || live == s.Value {
		return err
	}
	t.Act(kind.VerbSet, "is "+live+", want "+s.Value, kind.DisruptNone)
	t.Live = func(context.Context) error { return set(v.Host, s.Path, s.Value) }
	return nil
}

func impossible(known bool, want string, offered []string) string {
	switch {
	case !known:
		return "this kernel does not have it"
	case !slices.Contains(offered, want):
		return "this kernel offers " + strings.Join(offered, ", ")
	}
	return ""
}

// Remove implements kind.Remover: the value comes back that was there before. One
// that somebody else has changed since stays.
func (Kind) Remove(_ context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	path := strings.TrimPrefix(id, "sysfs:")
	text, known, err := v.ReadFile(path)
	if err != nil || v.Offline || !known || e.Was == nil || e.Was.Value == "" {
		return err
	}
	live, _ := choice(string(text))
	switch {
	case live == e.Was.Value:
		return nil
	case !e.Set(live):
		t.Kept = append(t.Kept, path+" is no longer wanted and is kept: it is "+live+", and berth had set it to "+e.Applied.Value)
		return nil
	}
	t.Act(kind.VerbRestore, "is "+live+", was "+e.Was.Value+" before berth", kind.DisruptNone)
	t.Live = func(context.Context) error { return set(v.Host, path, e.Was.Value) }
	return nil
}

// choice reads "always [madvise] never": what is in force, and what may be.
func choice(text string) (live string, offered []string) {
	for _, word := range strings.Fields(text) {
		plain := strings.TrimSuffix(strings.TrimPrefix(word, "["), "]")
		if plain != word {
			live = plain
		}
		offered = append(offered, plain)
	}
	return live, offered
}

func set(h host.FS, path, want string) error {
	err := h.WriteValue(path, []byte(want))
	if err == nil {
		var text []byte
		text, err = h.ReadFile(path)
		if live, _ := choice(string(text)); err == nil && live != want {
			err = fmt.Errorf("the kernel made it %s", live)
		}
	}
	if err != nil {
		return &Error{Path: path, Value: want, Err: err}
	}
	return nil
}

// Error is an attribute that did not take its value.
type Error struct {
	Path, Value string
	Err         error
}

// Error names the attribute and the value.
func (e *Error) Error() string { return fmt.Sprintf("set %s to %s: %v", e.Path, e.Value, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
