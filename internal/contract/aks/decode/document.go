package decode

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// CodeRefused is the published exit code of a configuration that can't be used
// (ERR_AKS_NODE_CONTROLLER_ERROR).
const CodeRefused = 240

// Document is a configuration that passed validation: each value has the form in which it counts.
type Document struct {
	Config *aksnodeconfigv1.Configuration
	// Notes are what was tolerated, in the order of the document.
	Notes []Note

	spelling spelling
}

// Path spells a path as the document does. It takes the names of the .proto, e.g. "kubelet_config.kubelet_flags[--v]".
func (d *Document) Path(canonical string) string { return d.spelling.respell(canonical) }

// NoteKind says what was tolerated.
type NoteKind string

// What a document may hold that is tolerated.
const (
	UnknownField NoteKind = "UnknownField" // a field of a newer contract; it was ignored
	UnknownValue NoteKind = "UnknownValue" // an enum value of a newer contract; the field counts as not set
	Deprecated   NoteKind = "Deprecated"   // read, but no longer written by anybody
	Normalized   NoteKind = "Normalized"   // a value that counts in another form; Config has that form
)

// Note is one thing that was tolerated. Path is spelled as in the document; lines count from 1.
type Note struct {
	Kind   NoteKind
	Path   string
	Line   int
	Detail string
}

func (n Note) String() string { return fmt.Sprintf("line %d: %s: %s", n.Line, n.Path, n.Detail) }

// FieldError is one reason to refuse. Field is the path as the document spells it, empty where
// the text is no JSON. Line and Column count from 1, columns in characters; 0 is unknown.
// A field that is missing has the position of the object that should hold it.
type FieldError struct {
	*field.Error
	Line, Column int
}

func (f FieldError) String() string {
	text := f.ErrorBody()
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, text)
}

// DocumentError holds every error of a document, in the order of the document. Secrets in it are redacted.
type DocumentError struct {
	Code   int // CodeRefused
	Errors []FieldError
}

func (e *DocumentError) Error() string {
	if len(e.Errors) == 1 {
		return "configuration refused: " + e.Errors[0].String()
	}
	lines := []string{fmt.Sprintf("configuration refused, %d errors:", len(e.Errors))}
	for _, f := range e.Errors {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// List is the errors without positions.
func (e *DocumentError) List() field.ErrorList {
	var out field.ErrorList
	for _, f := range e.Errors {
		out = append(out, f.Error)
	}
	return out
}

// ExitCode is Code: what a process that refuses the document exits with.
func (e *DocumentError) ExitCode() int { return e.Code }
