package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	p.offline = f.root != "/"
	p.ask(ctx)
	if p.document, err = readDocument(ctx, f.file); err != nil {
		return nil, err
	}
	c, err := decode(p.document)
	if err != nil {
		return nil, err
	}
	facts, err := p.factsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	st, err := c.Translate(facts)
	if is[documentError](err) {
		return nil, refused{err}
	}
	if err != nil {
		return nil, fmt.Errorf("translate %s: %w", f.file, err)
	}
	return &document{c, st, h, p}, nil
}

// documentError blames fields of the document.
type documentError interface {
	error
	List() field.ErrorList
}

// unused are the remarks on fields: what validation tolerated, and what has no
// effect or a part of it.
func (d *document) unused() []desired.FieldNote {
	return nonNil(slices.Concat(d.contract.Notes(), d.state.Unused, d.state.Partial))
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

// readDocument reads a regular file or a pipe, or standard input; anything else
// could have no end.
func readDocument(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return readInput(ctx, "standard input", func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil })
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if t := info.Mode().Type(); t != 0 && t != fs.ModeNamedPipe {
		return nil, fmt.Errorf("read the document: %s is neither a regular file nor a pipe", file)
	}
	return readInput(ctx, file, func() (io.ReadCloser, error) { return os.Open(file) })
}

// readInput opens and reads to the end, or until ctx ends: a pipe may have nobody
// at its other end, and somebody at a terminal may have meant something else.
func readInput(ctx context.Context, name string, open func() (io.ReadCloser, error)) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		in, err := open()
		if err != nil {
			done <- outcome{nil, err}
			return
		}
		defer in.Close()
		b, err := contract.Read(in)
		done <- outcome{b, err}
	}()
	select {
	case o := <-done:
		if _, ok := errors.AsType[*contract.TooLongError](o.err); ok {
			return nil, refused{fmt.Errorf("%s: %w", name, o.err)}
		}
		if o.err != nil {
			return nil, fmt.Errorf("read %s: %w", name, o.err)
		}
		return o.text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
