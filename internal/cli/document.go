package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// documentFlags are the flags of commands that read a document.
type documentFlags struct{ file, root, output string }

func (f *documentFlags) bind(c *cobra.Command, output, usage string) {
	c.Flags().StringVarP(&f.file, "filename", "f", "", "read the document from `FILE`; - is standard input")
	c.Flags().StringVar(&f.root, "root", "/", "work on the machine whose root is `DIR`, and do not touch this one")
	if output != "" {
		c.Flags().StringVarP(&f.output, "output", "o", output, usage)
	}
	_ = c.MarkFlagRequired("filename") // the flag exists
}

// document is a document and what it asks for on one machine.
type document struct {
	contract contract.Contract
	state    *desired.State
	host     host.Host
	parts    *parts
}

// load decodes a document and translates it for a machine.
func (e *env) load(ctx context.Context, f documentFlags) (*document, error) {
	b, err := readDocument(f.file)
	if err != nil {
		return nil, err
	}
	c, err := contract.Decode(b)
	if err != nil {
		return nil, err
	}
	h, err := e.open(f.root)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.root, err)
	}
	p := e.parts(h)
	p.offline = f.root != "/"
	st, err := c.Translate(p.facts(ctx, h))
	if err != nil {
		return nil, fmt.Errorf("translate %s: %w", f.file, err)
	}
	return &document{c, st, h, p}, nil
}

// unused are the fields without effect and what the door tolerated.
func (d *document) unused() []desired.FieldNote {
	return nonNil(append(d.contract.Notes(), d.state.Unused...))
}

func readDocument(file string) ([]byte, error) {
	if file == "-" {
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return b, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return b, nil
}
