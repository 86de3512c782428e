package contract

import (
	"fmt"
	"io"
)

// MaxBytes is how long a document may be.
const MaxBytes = 4 << 20

// TooLongError is a document that is longer than any contract needs.
type TooLongError struct{}

// Error names the bound.
func (*TooLongError) Error() string {
	return fmt.Sprintf("the document has more than %d MiB", MaxBytes>>20)
}

// Hint says what to look at.
func (*TooLongError) Hint() string {
	return "A document has some KiB: check that this is the file that was meant."
}

// Read reads a document to its end; of one that is too long, not much more than
// may be. The error is then a *TooLongError.
func Read(in io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBytes {
		return nil, &TooLongError{}
	}
	return b, nil
}
