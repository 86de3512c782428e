package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-dev/berth/lab"
)

// part is one group of figures: with nodes of a lab, or without.
type part struct {
	name   string
	inLab  func(context.Context, *lab.Lab, Options, io.Writer) error
	onHost func(context.Context, Options, io.Writer) error
	// audited: it counts what agents ask the API server for.
	audited bool
}

var parts = []part{
	{name: "join", inLab: joins},
	{name: "leave", inLab: departures},
	{name: "limits", inLab: limits},
	{name: "artifacts", onHost: Artifacts},
	{name: "bare", inLab: bare},
	{name: "joinbare", inLab: joinBytes},
	{name: "token", inLab: tokens},
	{name: "agent", inLab: agents, audited: true},
	{name: "fleet", inLab: fleets, audited: true},
	{name: "engine", onHost: Engines},
	{name: "plan", onHost: plans},
	{name: "whole", inLab: wholes},
}

// Parts are the names that Options.Only may hold, in the order in which All
// runs them.
func Parts() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// Check refuses names of parts that do not exist.
func (o Options) Check() error {
	for _, n := range o.Only {
		if !slices.Contains(Parts(), n) {
			return fmt.Errorf("no part %q: want %s", n, strings.Join(Parts(), ", "))
		}
	}
	return nil
}

// NeedsLab says whether a part that o names needs a lab.
func (o Options) NeedsLab() bool {
	return slices.ContainsFunc(parts, func(p part) bool { return o.names(p) && p.inLab != nil })
}

// AuditGroup is the group of users whose requests the lab's API server has to log.
func (o Options) AuditGroup() string {
	if slices.ContainsFunc(parts, func(p part) bool { return o.names(p) && p.audited }) {
		return agentsGroup
	}
	return ""
}

func (o Options) names(p part) bool { return len(o.Only) == 0 || slices.Contains(o.Only, p.name) }

// All measures every part that o names, and prints to w. The lab may be nil
// where no part needs one.
func All(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	o.Pairs = cmp.Or(o.Pairs, 10)
	if err := o.Check(); err != nil {
		return err
	}
	if o.NeedsLab() {
		if err := l.AwaitSigner(ctx); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if !o.names(p) {
			continue
		}
		if err := p.run(ctx, l, o, w); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p part) run(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	if p.inLab != nil {
		return p.inLab(ctx, l, o, w)
	}
	return p.onHost(ctx, o, w)
}
