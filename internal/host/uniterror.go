package host

import (
	"errors"
	"strings"
)

// What systemd says where it accepts no job at all.
var (
	ErrNoSuchUnit    = errors.New("no such unit")
	ErrUnitMasked    = errors.New("unit is masked")
	ErrBadUnit       = errors.New("unit has a bad setting")
	ErrNotApplicable = errors.New("job type is not applicable")
)

// ErrNotAUnit is the answer for the name of a template, of which there are only
// instances.
var ErrNotAUnit = errors.New("a template is no unit")

// IsTemplate says whether a name is that of a template: NAME@.TYPE.
func IsTemplate(name string) bool { return strings.Contains(name, "@.") }

// UnitError is a job that was not accepted. It matches one of the errors above
// by errors.Is where systemd's answer is one of them.
type UnitError struct {
	Unit string
	Err  error
}

// Error implements error.
func (e *UnitError) Error() string { return e.Unit + ": " + e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *UnitError) Unwrap() error { return e.Err }
