package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// documentFlags are the flags of commands that read a document.
type documentFlags struct{ file, root, output string }

func (f *documentFlags) bind(c *cobra.Command, output, usage string) {
	c.Flags().StringVarP(&f.file, "filename", "f", "", "read the document from `FILE`; - is standard input")
	c.Flags().StringVar(&f.root, "root", "/", "work on the machine whose root is `DIR`, and do not touch this one")
	if output != "" {
		c.Flags().StringVarP(&f.output, "output", "o", output, usage)
	}
}

// complete refuses what can't be meant; the root becomes an absolute path.
func (f *documentFlags) complete() error {
	if f.file == "" {
		return errors.New("-f FILE is missing")
	}
	return absoluteRoot(&f.root)
}

// absoluteRoot makes the value of --root what a host is opened with.
func absoluteRoot(root *string) error {
	if *root == "" {
		return errors.New("--root is empty")
	}
	p, err := filepath.Abs(*root)
	if err != nil {
		return fmt.Errorf("--root: %w", err)
	}
	*root = p
	return nil
}

// fromHere is a name as seen from the present directory: a host knows none.
func fromHere(name string) string {
	if full, err := filepath.Abs(name); err == nil && name != "" {
		return full
	}
	return name
}

// document is a document and what it asks for on one machine.
type document struct {
	contract contract.Contract
	state    *desired.State
	host     host.Host
	parts    *parts
}

// load decodes a document and translates it for a machine. The question for the
// machine's address goes out first: where nobody answers, that takes longer than
// all the rest.
func (e *env) load(ctx context.Context, f documentFlags) (*document, error) {
	h, err := e.open(f.root)
	if err != nil {
		return nil, err
	}
	p := e.parts(h)
	p.inquiry.Source.Offline = f.root != "/"
	p.inquiry.Begin(ctx)
	if p.document, err = provision.ReadDocument(ctx, f.file); err != nil {
		return nil, err
	}
	c, err := provision.Decode(p.document)
	if err != nil {
		return nil, err
	}
	facts, err := p.factsFor(ctx, c)
	if err != nil {
		return nil, err
	}
	st, err := provision.Translate(c, facts, f.file)
	if err != nil {
		return nil, err
	}
	return &document{c, st, h, p}, nil
}

// unused are the remarks on fields.
func (d *document) unused() []desired.FieldNote {
	return provision.Unused(d.contract, d.state)
}
