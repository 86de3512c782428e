package report

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/exitcode"
)

// Failure is an error as operators see it.
type Failure struct {
	Code exitcode.Code
	// Cause is what went wrong.
	Cause string
	// Doing is what was being done: the action, or the milestone of the run.
	Doing string
	// Field is the path of the contract's field behind it; empty if none is.
	Field string
	// Hint is what an operator can do.
	Hint string
}

// Classify is what an error says of itself: each part is of the first error in it
// that knows, by the methods ExitCode, Doing, Field and Hint; the list of a
// refused document's errors is by the method List. No error is code 0.
func Classify(err error) Failure {
	f := Failure{Code: exitcode.ByNumber(exitcode.Of(err))}
	if err == nil {
		f.Hint = f.Code.Hint
		return f
	}
	f.Cause = cause(err)
	f.Doing, f.Field = where(err)
	if slices.Contains(blameless, f.Code.Number) {
		f.Field = ""
	}
	f.Hint = first(err, func(e interface{ Hint() string }) string { return e.Hint() })
	if f.Hint == "" {
		f.Hint = f.Code.Hint
	}
	return f
}

// blameless are failures that no other value of the field would have spared: the
// field only says at what it happened.
var blameless = []int{exitcode.Interrupted, exitcode.NoSpace, exitcode.Locked, exitcode.Write}

func where(err error) (doing, fieldPath string) {
	for e := range exitcode.Tree(err) {
		if l, ok := e.(interface{ List() field.ErrorList }); ok {
			return "read the configuration", fieldPaths(l.List())
		}
	}
	doing = first(err, func(e interface{ Doing() string }) string { return e.Doing() })
	return doing, first(err, func(e interface{ Field() string }) string { return e.Field() })
}

// first is what the first error that knows says; "" where none does.
func first[E any](err error, ask func(E) string) string {
	for e := range exitcode.Tree(err) {
		if k, ok := e.(E); ok && ask(k) != "" {
			return ask(k)
		}
	}
	return ""
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
