package converge

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was recovered: an error like others, so that a
// result document is still written.
type PanicError struct {
	Value any
	Stack string
}

// Error is what the program panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Safely calls f and returns a panic as a *PanicError. Every goroutine needs it:
// a panic that nothing recovers there ends the process at once.
func Safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}
