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

// part is one group of figures.
type part struct {
	name string
	run  func(context.Context, *lab.Lab, Options, io.Writer) error
}

var parts = []part{
	{"join", joins},
	{"limits", limits},
	{"artifacts", func(ctx context.Context, _ *lab.Lab, o Options, w io.Writer) error { return Artifacts(ctx, o, w) }},
	{"bare", bare},
	{"engine", func(ctx context.Context, _ *lab.Lab, o Options, w io.Writer) error { return Engines(ctx, o, w) }},
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

// All measures every part that o names, and prints to w.
func All(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	o.Pairs = cmp.Or(o.Pairs, 10)
	if err := o.Check(); err != nil {
		return err
	}
	if err := l.AwaitSigner(ctx); err != nil {
		return err
	}
	for _, p := range parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		if err := p.run(ctx, l, o, w); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
