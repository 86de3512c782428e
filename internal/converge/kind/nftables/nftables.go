// Package nftables is the kind of packet filters: whole tables of berth's own.
package nftables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of packet filters.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "nftables" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// Observe implements kind.Kind. A table that differs in anything is replaced: its
// name is berth's.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	p := r.(*desired.PacketFilter)
	if v.Offline {
		t.Postpone(kind.VerbSet, "the packet filter is set on first boot")
		return nil
	}
	want := Table(p)
	have, err := v.Host.FilterTable(ctx, p.Table)
	if err != nil {
		return failed(p, "read", err)
	}
	was := "present"
	if have == nil {
		was = "absent"
	}
	if err := v.ClaimLive(t, string(p.ID()), asked(want), was, kind.Equal); err != nil || have.Equal(&want) {
		return err
	}
	t.Act(kind.VerbSet, differs(have, want), kind.DisruptNone)
	t.Live = func(ctx context.Context) error {
		if err := v.Host.ReplaceFilterTable(ctx, want); err != nil {
			return failed(p, "set", err)
		}
		return nil
	}
	return nil
}

// Remove implements kind.Remover: the table goes with all that is in it.
func (Kind) Remove(ctx context.Context, v *kind.View, t *kind.Task, id string, _ ledger.Entry) error {
	if v.Offline {
		return nil
	}
	name := strings.TrimPrefix(id, "nftables:")
	p := &desired.PacketFilter{Table: name}
	have, err := v.Host.FilterTable(ctx, name)
	if err != nil {
		return failed(p, "read", err)
	}
	if have == nil {
		return nil
	}
	t.Act(kind.VerbDelete, "no longer wanted", kind.DisruptNone)
	t.Live = func(ctx context.Context) error {
		if err := v.Host.DeleteFilterTable(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(p, "delete", err)
		}
		return nil
	}
	return nil
}

// Table is a packet filter as the host takes it.
func Table(p *desired.PacketFilter) host.FilterTable {
	t := host.FilterTable{Name: p.Table}
	for _, c := range p.Chains {
		chain := host.FilterChain{Name: c.Name, Hook: c.Hook, Priority: c.Priority}
		for _, d := range c.Drop {
			chain.Drops = append(chain.Drops, host.Drop(d))
		}
		for _, u := range c.Untracked {
			chain.Untracked = append(chain.Untracked, host.Untracked(u))
		}
		t.Chains = append(t.Chains, chain)
	}
	return t
}

// asked tells two filters of one name apart.
func asked(t host.FilterTable) string { return desired.Text(strings.Join(lines(&t), "\n")).Sum() }

// lines are what a table holds.
func lines(t *host.FilterTable) []string {
	out := []string{"table " + t.Name}
	for _, c := range t.Chains {
		at := fmt.Sprintf("chain %s at %s %d", c.Name, c.Hook, c.Priority)
		out = append(out, at)
		for _, d := range c.Drops {
			out = append(out, at+": "+d.String()+" "+d.Comment)
		}
		for _, u := range c.Untracked {
			out = append(out, at+": "+u.String()+" "+u.Comment)
		}
	}
	for _, other := range t.Other {
		out = append(out, "other: "+other)
	}
	return out
}

// differs is the first thing that is not as it should be.
func differs(have *host.FilterTable, want host.FilterTable) string {
	if have == nil {
		return "the table is absent"
	}
	if len(have.Other) > 0 {
		return have.Other[0] + " is not berth's"
	}
	there, wanted := map[string]bool{}, map[string]bool{}
	for _, l := range lines(have) {
		there[l] = true
	}
	for _, l := range lines(&want) {
		if wanted[l] = true; !there[l] {
			return "lacks " + strings.TrimSpace(l)
		}
	}
	for _, l := range lines(have) {
		if !wanted[l] {
			return "has " + strings.TrimSpace(l)
		}
	}
	return "the order of the rules differs"
}

// Error is a packet filter that is not in force.
type Error struct {
	Filter *desired.PacketFilter
	Doing  string
	Err    error
}

func failed(p *desired.PacketFilter, doing string, err error) error {
	return &Error{Filter: p, Doing: doing, Err: err}
}

// Error names the table.
func (e *Error) Error() string {
	return fmt.Sprintf("%s table inet %s of nftables: %v", e.Doing, e.Filter.Table, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
