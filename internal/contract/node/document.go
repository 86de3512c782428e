// Package node turns the NodeConfig contract (berth.dev/v1alpha1, YAML or JSON)
// into desired state.
package node

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/exitcode"
)

// Document is a document that passed validation. Its Config has the defaults.
type Document struct {
	Config *v1alpha1.NodeConfig
	// saysDomain: the cluster's domain stands in the text.
	saysDomain bool
	// lines are those at which fields stand, by path.
	lines lines
}

// Server is the API server's URL with its port.
func (d *Document) Server() string { return server(d.Config) }

// lines are the lines of a text by the paths of its fields.
type lines map[string]int

// of is the line of a field, or of the closest one around it that the text has; 0
// for none.
func (l lines) of(path string) int {
	for p := path; p != ""; p = p[:max(strings.LastIndexAny(p, ".["), 0)] {
		if n, ok := l[p]; ok {
			return n
		}
	}
	return 0
}

// DocumentError holds every error of a document that is refused. It shows no
// secret.
type DocumentError struct {
	Errors field.ErrorList
	lines  lines
	// kind is what was refused; "" is a NodeConfig.
	kind string
}

// Error names the errors with their paths and lines.
func (e *DocumentError) Error() string {
	kind := cmp.Or(e.kind, "NodeConfig")
	if len(e.Errors) == 1 {
		return kind + " refused: " + e.shown(e.Errors[0])
	}
	text := []string{fmt.Sprintf("%s refused, %d errors:", kind, len(e.Errors))}
	for _, f := range e.Errors {
		text = append(text, "  "+e.shown(f))
	}
	return strings.Join(text, "\n")
}

func (e *DocumentError) shown(f *field.Error) string {
	if f.Field == "" {
		return f.ErrorBody()
	}
	if n := e.lines.of(f.Field); n > 0 {
		return fmt.Sprintf("line %d: %s: %s", n, f.Field, f.ErrorBody())
	}
	return f.Field + ": " + f.ErrorBody()
}

// ExitCode is that of a configuration that can't be used.
func (e *DocumentError) ExitCode() int { return exitcode.Internal }

// List is the errors.
func (e *DocumentError) List() field.ErrorList { return e.Errors }

// refusal is nil where there is no error.
func refusal(errs field.ErrorList, at lines) error {
	if len(errs) == 0 {
		return nil
	}
	return &DocumentError{Errors: errs, lines: at}
}

// invalid is an error that does not show the value: it may be a secret. Without a
// path it is the text as a whole.
func invalid(at *field.Path, detail string) *field.Error {
	e := field.Invalid(at, field.OmitValueType{}, detail)
	if at == nil {
		e.Field = ""
	}
	return e
}
