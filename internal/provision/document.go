package provision

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// standardInput is the name of a document that comes by standard input.
const standardInput = "-"

// ReadDocument reads a regular file or a pipe, or standard input, which is called "-";
// anything else could have no end. A document that is too long is an
// *exitcode.RefusedError; where ctx ends first, the error is its cause.
func ReadDocument(ctx context.Context, file string) ([]byte, error) {
	if file == standardInput {
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
		if is[*contract.TooLongError](o.err) {
			return nil, &exitcode.RefusedError{Err: fmt.Errorf("%s: %w", name, o.err)}
		}
		if o.err != nil {
			return nil, fmt.Errorf("read %s: %w", name, o.err)
		}
		return o.text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// DocumentStays says whether a document can be read again later under its name.
func DocumentStays(file string) bool {
	full, err := filepath.Abs(file)
	if err != nil || file == standardInput || strings.HasPrefix(full, "/dev/") || strings.HasPrefix(full, "/proc/") {
		return false
	}
	info, err := os.Stat(full)
	return err == nil && info.Mode().IsRegular()
}

// Decode takes a document, or refuses it with an *exitcode.RefusedError.
func Decode(text []byte) (contract.Contract, error) {
	c, err := contract.Decode(text)
	if err != nil {
		return nil, &exitcode.RefusedError{Err: err}
	}
	return c, nil
}

// ReadContract reads and decodes a document.
func ReadContract(ctx context.Context, file string) (contract.Contract, error) {
	text, err := ReadDocument(ctx, file)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// Translate is what a document asks for on a machine with these facts. It is refused with
// an *exitcode.RefusedError where the document is to blame; name is what it is called else.
func Translate(c contract.Contract, f component.Facts, name string) (*desired.State, error) {
	st, err := c.Translate(f)
	switch {
	case err == nil:
		return st, nil
	case contract.Blames(err):
		return nil, &exitcode.RefusedError{Err: err}
	}
	return nil, fmt.Errorf("translate %s: %w", name, err)
}

// Unused are the remarks on fields of a document: what validation tolerated, and what has no
// effect or a part of it. They are never nil.
func Unused(c contract.Contract, st *desired.State) []desired.FieldNote {
	return append([]desired.FieldNote{}, slices.Concat(c.Notes(), st.Unused, st.Partial)...)
}
