package host

import (
	"errors"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/unitname"
)

// What systemd says where it accepts no job at all.
var (
	ErrNoSuchUnit    = errors.New("no such unit")
	ErrUnitMasked    = errors.New("unit is masked")
	ErrBadUnit       = errors.New("unit has a bad setting")
	ErrNotApplicable = errors.New("job type is not applicable")
	// ErrOnlyByDependency: RefuseManualStart= or RefuseManualStop= is set.
	ErrOnlyByDependency = errors.New("unit takes this job from other units only")
)

// ErrNotAUnit is the answer for a name that no unit can have: that of a template,
// of which there are only instances, or one without a type.
var ErrNotAUnit = errors.New("not the name of a unit")

// unitTypes are the ends of unit names.
var unitTypes = []string{
	".service", ".socket", ".target", ".mount", ".automount", ".swap", ".timer", ".path", ".slice", ".scope", ".device",
}

// CheckUnit refuses a name that no unit can have: ErrNotAUnit.
func CheckUnit(name string) error {
	if unitname.IsTemplate(name) || !slices.Contains(unitTypes, path.Ext(name)) {
		return &UnitError{Unit: name, Err: ErrNotAUnit}
	}
	return nil
}

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
