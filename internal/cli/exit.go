package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
)

// told is an error that has been told already and leaves only its number.
type told int

// Error implements error.
func (c told) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exit tells an error and returns the number that the program ends with.
func (e *env) exit(err error) int {
	switch t, ok := errors.AsType[told](err); {
	case err == nil:
		return 0
	case ok:
		return int(t)
	case errors.Is(err, syscall.EPIPE): // whoever read has seen enough
		return exitcode.Failed
	}
	code, f := exitcode.OfCommand(err), provision.ExplainCommand(err)
	fmt.Fprintf(e.err, "error: %v\n", err)
	if f.Field != "" {
		fmt.Fprintf(e.err, "  field: %s\n", f.Fields())
	}
	switch {
	case e.uid != 0 && errors.Is(err, fs.ErrPermission):
		fmt.Fprintf(e.err, "  hint: Run it as root; this is user %d.\n", e.uid)
	case code == exitcode.Failed && f.Hint != "":
		fmt.Fprintf(e.err, "  hint: %s\n", f.Hint)
	}
	return code
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
