package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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

// document is a document and what it asks for on one machine.
type document struct {
	contract contract.Contract
	state    *desired.State
	host     host.Host
	parts    *parts
}

// load decodes a document and translates it for a machine.
func (e *env) load(ctx context.Context, f documentFlags) (*document, error) {
	c, err := readContract(ctx, f.file)
	if err != nil {
		return nil, err
	}
	h, err := e.open(f.root)
	if err != nil {
		return nil, err
	}
	p := e.parts(h)
	p.offline = f.root != "/"
	facts, err := p.facts(ctx, h)
	if err != nil {
		return nil, err
	}
	st, err := c.Translate(facts)
	if err != nil {
		return nil, fmt.Errorf("translate %s: %w", f.file, err)
	}
	return &document{c, st, h, p}, nil
}

// unused are the fields without effect and what was tolerated.
func (d *document) unused() []desired.FieldNote {
	return nonNil(append(d.contract.Notes(), d.state.Unused...))
}

// readContract reads and decodes a document.
func readContract(ctx context.Context, file string) (contract.Contract, error) {
	b, err := readDocument(ctx, file)
	if err != nil {
		return nil, err
	}
	return decode(b)
}

// decode takes a document, or refuses it.
func decode(b []byte) (contract.Contract, error) {
	c, err := contract.Decode(b)
	if err != nil {
		return nil, refused{err}
	}
	return c, nil
}

func readDocument(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return readInput(ctx, os.Stdin)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return b, nil
}

// readInput reads to the end, or until ctx ends: somebody at a terminal may have
// meant something else.
func readInput(ctx context.Context, in io.Reader) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		b, err := io.ReadAll(in)
		done <- outcome{b, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, fmt.Errorf("read standard input: %w", o.err)
		}
		return o.text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
