package exitcode

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"
)

// ErrInterrupted is the cause of a context that ends because of a signal. It
// decides over whatever else an error holds.
var ErrInterrupted = errors.New("told to stop")

// ErrTimeout is the cause of a context that ends because cse_timeout is over.
var ErrTimeout error = &Error{Number: Timeout, Err: errors.New("the time in cse_timeout is over")}

// Coded is an error that knows its code; 0 leaves it to the errors that it wraps.
type Coded interface{ ExitCode() int }

// Error gives an error the code that it has here, and what else is known about
// it. All but Number and Err may be empty.
type Error struct {
	Number int
	// During is what was being done.
	During string
	// At is the path of the contract's field behind it.
	At string
	// Remedy is a hint that is better than the code's own.
	Remedy string
	Err    error
}

// Error is the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the number in the registry.
func (e *Error) ExitCode() int { return e.Number }

// Hint is the remedy.
func (e *Error) Hint() string { return e.Remedy }

// Doing is what was being done.
func (e *Error) Doing() string { return e.During }

// Field is the path of the contract's field.
func (e *Error) Field() string { return e.At }

// Of is the code of an error: what Known says, else what is left to say of the
// machine's own errors, else Internal. No error is OK.
func Of(err error) int {
	if err == nil {
		return OK
	}
	if n := Known(err); n != 0 {
		return n
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case RefusedWrite(err):
		return Write
	}
	return Internal
}

// Known is the code that an error has by itself, wherever it comes from: that of
// a signal, of a full disk, else the first that an error in it carries. It is 0
// where nothing says.
func Known(err error) int {
	switch {
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return NoSpace
	}
	for e := range Tree(err) {
		if c, ok := e.(Coded); ok && c.ExitCode() != 0 {
			return c.ExitCode()
		}
	}
	return 0
}

// RefusedWrite says that the machine takes no file, not that one is wrong.
func RefusedWrite(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		return false
	}
	for _, e := range []error{syscall.EIO, syscall.EROFS, syscall.EPERM, syscall.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Tree is an error and all that it wraps, in the order in which errors.As looks.
func Tree(err error) iter.Seq[error] {
	return func(yield func(error) bool) { walk(err, yield) }
}

func walk(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	if !yield(err) {
		return false
	}
	switch e := err.(type) { //nolint:errorlint // this is what unwraps
	case interface{ Unwrap() error }:
		return walk(e.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !walk(one, yield) {
				return false
			}
		}
	}
	return true
}
