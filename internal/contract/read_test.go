package contract

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// endless gives bytes for ever and counts them.
type endless struct{ given int }

func (e *endless) Read(p []byte) (int, error) {
	e.given += len(p)
	return len(p), nil
}

func TestRead(t *testing.T) {
	longest := bytes.Repeat([]byte(" "), MaxBytes)
	if b, err := Read(bytes.NewReader(longest)); err != nil || len(b) != MaxBytes {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for name, in := range map[string]io.Reader{"a byte more": io.MultiReader(bytes.NewReader(longest), bytes.NewReader([]byte{0})), "no end": &endless{}} {
		if _, ok := errors.AsType[*TooLongError](second(Read(in))); !ok {
			t.Errorf("%s: taken", name)
		}
		if e, ok := in.(*endless); ok && e.given > 2*MaxBytes {
			t.Errorf("%d bytes were read", e.given)
		}
	}
	if _, err := Read(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func second(_ []byte, err error) error { return err }
