package report

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/identity"
)

// Failure is an error as operators see it.
type Failure struct {
	Code Code
	// Cause is what went wrong.
	Cause string
	// Doing is what was being done: the action, or the stage of the run.
	Doing string
	// Field is the path of the contract's field behind it; empty if none is.
	Field string
	// Hint is what an operator can do.
	Hint string
}

// ErrTimeout is the cause of a context that ends because cse_timeout is over.
var ErrTimeout = errors.New("the time in cse_timeout is over")

// ErrInterrupted is the cause of a context that ends because of a signal.
var ErrInterrupted = errors.New("told to stop")

// coded is an error that knows its exit code.
type coded interface{ ExitCode() int }

// hinted is an error that knows better than the registry what helps.
type hinted interface{ Hint() string }

// doing is an error that knows what was being done.
type doing interface{ Doing() string }

// Error is a failure whose code is known where it happens.
type Error struct {
	Number int
	// During is what was being done.
	During string
	// Remedy is a hint that is better than the code's own; may be empty.
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

// PanicError is a panic that was recovered.
type PanicError = converge.PanicError

// defect asks for a report.
const defect = "This is a defect of berth: report it with the log at " + LogPath + "."

// Classify says what an error means for operators. The state, which may be nil,
// is the one that was being applied. No error is code 0.
func Classify(err error, st *desired.State) Failure {
	if err == nil {
		c := ByNumber(CodeOK)
		return Failure{Code: c, Hint: c.Hint}
	}
	f := Failure{Code: ByNumber(number(err, st)), Cause: cause(err)}
	f.Doing, f.Field = where(err)
	if slices.Contains(blameless, f.Code.Number) {
		f.Field = ""
	}
	f.Hint = hint(err, f.Code)
	return f
}

// blameless are failures that no other value of the field would have spared: the
// field only says at what it happened.
var blameless = []int{CodeInterrupted, CodeNoSpace, CodeLocked, CodeWrite}

// hint is the first that knows: the error, then the registry.
func hint(err error, c Code) string {
	if e, ok := errors.AsType[*identity.Error](err); ok && e.Hint != "" {
		return e.Hint
	}
	if e, ok := errors.AsType[*apiserver.StageError](err); ok && e.Hint != "" {
		return e.Hint
	}
	var h hinted
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	if is[*PanicError](err) {
		return defect
	}
	return c.Hint
}

func where(err error) (doingText, fieldPath string) {
	var list interface{ List() field.ErrorList }
	if errors.As(err, &list) {
		return "read the configuration", fieldPaths(list.List())
	}
	var d doing
	if errors.As(err, &d) {
		doingText = d.Doing()
	}
	if e, ok := errors.AsType[*apiserver.StageError](err); ok {
		return "wait for " + string(e.Stage), ""
	}
	var a *converge.ActionError
	if errors.As(err, &a) {
		return string(a.Verb) + " " + string(a.ID), a.Field
	}
	return doingText, ""
}

// fieldPaths lists the paths.
func fieldPaths(l field.ErrorList) string {
	var paths []string
	for _, e := range l {
		if e.Field != "" {
			paths = append(paths, e.Field)
		}
	}
	return strings.Join(paths, ", ")
}

// cause is the error's text on one line: lines are separated by semicolons.
func cause(err error) string {
	var b strings.Builder
	for line := range strings.Lines(err.Error()) {
		s := strings.TrimSpace(line)
		switch {
		case s == "":
			continue
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		case b.Len() > 0:
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	return b.String()
}
