// Package module is the kind of kernel modules: what counts is that the function
// is there, loaded or built in.
package module

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

// Kind is the kind of modules.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "module" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	m := r.(*desired.Module)
	there, err := evident(v, m)
	if err != nil {
		return err
	}
	if v.Offline {
		if !there {
			t.Postpone(kind.VerbLoad, "kernel modules load on first boot")
		}
		return nil
	}
	was := "loaded"
	if !there {
		was = "not loaded"
		t.Act(kind.VerbLoad, "no sign of it in "+strings.Join(m.Evidence, ", "), kind.DisruptNone)
		t.Live = func(ctx context.Context) error { return load(ctx, v.Host, m) }
	}
	return v.ClaimLive(t, string(r.ID()), "loaded", was, kind.Equal)
}

// Remove implements kind.Remover. A module that berth loaded stays until the next
// boot: what uses it meanwhile is not known.
func (Kind) Remove(context.Context, *kind.View, *kind.Task, string, ledger.Entry) error { return nil }

func evident(v *kind.View, m *desired.Module) (bool, error) {
	for _, path := range m.Evidence {
		info, err := v.Lstat(path)
		if err != nil || info != nil {
			return err == nil, err
		}
	}
	if m.Filesystem == "" {
		return false, nil
	}
	list, _, err := v.ReadFile("/proc/filesystems")
	return slices.Contains(strings.Fields(string(list)), m.Filesystem), err
}

func load(ctx context.Context, h host.Host, m *desired.Module) error {
	_, err := h.Run(ctx, host.Command{Path: "modprobe", Args: []string{"--", m.Name}})
	if err != nil {
		return &Error{Name: m.Name, Err: err}
	}
	return nil
}

// Error is a kernel module that could not be loaded.
type Error struct {
	Name string
	Err  error
}

// Error names the module.
func (e *Error) Error() string { return fmt.Sprintf("load kernel module %s: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
