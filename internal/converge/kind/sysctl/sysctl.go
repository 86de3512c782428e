// Package sysctl is the kind of live kernel parameters. The line that sets one at
// boot is a file.
package sysctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of kernel parameters.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "sysctl" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	s := r.(*desired.Sysctl)
	if v.Offline {
		t.Postpone(kind.VerbSet, "kernel parameters are set on first boot")
		return nil
	}
	have, known, err := v.ReadFile(file(s.Key))
	if err != nil {
		return err
	}
	live, want := normalise(string(have)), normalise(s.Value)
	if known && s.KubeletWrites && live != want {
		t.Remarks = append(t.Remarks, fmt.Sprintf("%s is %s, the configuration says %s; kubelet sets it too", s.Key, live, want))
		return nil
	}
	if !known && s.Optional {
		t.Remarks = append(t.Remarks, "this kernel has no "+s.Key)
		return nil
	}
	if err := v.ClaimLive(t, string(s.ID()), want, live, kind.Equal); err != nil || known && live == want {
		return err
	}
	reason := "is " + live + ", want " + want
	if !known {
		reason = "not known to the kernel yet, want " + want
	}
	t.Act(kind.VerbSet, reason, kind.DisruptNone)
	t.Live = func(context.Context) error { return Set(v.Host, s.Key, want) }
	return nil
}

// Remove implements kind.Remover: the value comes back that was there before. One
// that somebody else has changed since stays.
func (Kind) Remove(_ context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	key := strings.TrimPrefix(id, "sysctl:")
	have, known, err := v.ReadFile(file(key))
	if err != nil || v.Offline || !known || e.Was == nil || e.Was.Value == "" {
		return err
	}
	live := normalise(string(have))
	switch {
	case live == e.Was.Value:
		return nil
	case !e.Set(live):
		t.Kept = append(t.Kept, key+" is no longer wanted and is kept: it is "+live+", and berth had set it to "+e.Applied.Value)
		return nil
	}
	t.Act(kind.VerbRestore, "is "+live+", was "+e.Was.Value+" before berth", kind.DisruptNone)
	t.Live = func(context.Context) error { return Set(v.Host, key, e.Was.Value) }
	return nil
}

func file(key string) string {
	swap := strings.NewReplacer(".", "/", "/", ".")
	return "/proc/sys/" + swap.Replace(key)
}

// Value is a kernel parameter's; "" where the kernel does not have it.
func Value(h host.FS, key string) (string, error) {
	text, _, err := ledger.ReadFile(h, file(key))
	return normalise(string(text)), err
}

func normalise(value string) string { return strings.Join(strings.Fields(value), " ") }

// attempts are how often a value is written that is not there when it is read.
//
// ip_forward and conf.all.forwarding are one value of the kernel. A write that
// does not get the network lock at once takes its value back and begins again
// (devinet_sysctl_forward): of two writers at a time the one that is done can
// read the old value.
const attempts = 5

// Set writes the value of a kernel parameter. Its error is an *Error.
func Set(h host.FS, key, want string) error {
	var err error
	for range attempts {
		if err = setOnce(h, key, want); !errors.Is(err, errOther) {
			break
		}
	}
	if err != nil {
		return &Error{Key: key, Value: want, Err: err}
	}
	return nil
}

// errOther: the kernel has another value than the one written.
var errOther = errors.New("the kernel made it")

func setOnce(h host.FS, key, want string) error {
	if err := h.WriteValue(file(key), []byte(want+"\n")); err != nil {
		return err
	}
	have, err := h.ReadFile(file(key))
	if err == nil && normalise(string(have)) != want {
		err = fmt.Errorf("%w %s", errOther, normalise(string(have)))
	}
	return err
}

// Error is a kernel parameter that did not take its value.
type Error struct {
	Key, Value string
	Err        error
}

// Error names key and value.
func (e *Error) Error() string { return fmt.Sprintf("set %s to %s: %v", e.Key, e.Value, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
