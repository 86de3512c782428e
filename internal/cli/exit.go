package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/report"
)

// The exit codes of every command but provision and provision-wait.
const (
	exitFailed      = 1
	exitPending     = 2
	exitRefused     = 3
	exitKept        = 4
	exitInterrupted = 130
)

// exitCode is an error that has been told already and leaves only its number.
type exitCode int

// Error implements error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exit tells an error and returns the number that the program ends with.
func (e *env) exit(err error) int {
	var told exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return int(told)
	case errors.Is(err, syscall.EPIPE): // whoever read has seen enough
		return exitFailed
	}
	code, f := classify(err), report.Classify(err, e.state)
	fmt.Fprintf(e.err, "error: %v\n", err)
	if f.Field != "" {
		fmt.Fprintf(e.err, "  field: %s\n", few(f.Field))
	}
	switch {
	case e.uid != 0 && errors.Is(err, fs.ErrPermission):
		fmt.Fprintf(e.err, "  hint: Run it as root; this is user %d.\n", e.uid)
	case code == exitFailed && (f.Code.Number != report.CodeInternal || f.Hint != f.Code.Hint):
		fmt.Fprintf(e.err, "  hint: %s\n", f.Hint)
	}
	return code
}

// few are the first of many fields: the error names them all.
func few(fields string) string {
	const most = 3
	paths := strings.Split(fields, ", ")
	if len(paths) <= most {
		return fields
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

func classify(err error) int {
	var document *aks.DocumentError
	var kind *contract.UnknownKindError
	var unhandled *contract.UnhandledError
	switch {
	case errors.Is(err, report.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &document), errors.As(err, &kind), errors.As(err, &unhandled):
		return exitRefused
	}
	return exitFailed
}
