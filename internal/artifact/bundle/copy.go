package bundle

import (
	"context"
	"io"
)

// copySize is the buffer of a copy, in bytes.
const copySize = 256 << 10

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

// plainWriter hides ReadFrom, which would bring its own buffer.
type plainWriter struct{ io.Writer }
