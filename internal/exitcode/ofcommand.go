package exitcode

import "errors"

// RefusedError is a document that can't be taken as it is.
type RefusedError struct{ Err error }

// Error is what is wrong with it.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *RefusedError) Unwrap() error { return e.Err }

// OfCommand is what all commands end with after an error but provision and provision-wait:
// CommandInterrupted, Refused or Failed.
func OfCommand(err error) int {
	if errors.Is(err, ErrInterrupted) {
		return CommandInterrupted
	}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return Refused
	}
	return Failed
}
