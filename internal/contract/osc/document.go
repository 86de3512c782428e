// Package osc turns the OperatingSystemConfig contract
// (extensions.gardener.cloud/v1alpha1, YAML or JSON) into desired state.
package osc

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// Document is a document that passed validation.
type Document struct {
	Config *v1alpha1.OperatingSystemConfig
	// Notes are what was tolerated, by path.
	Notes []desired.FieldNote
}

// DocumentError holds every error of a document that is refused. It shows no
// content of files.
type DocumentError struct{ Errors field.ErrorList }

// Error names the errors with their paths.
func (e *DocumentError) Error() string {
	if len(e.Errors) == 1 {
		return "OperatingSystemConfig refused: " + shown(e.Errors[0])
	}
	lines := []string{fmt.Sprintf("OperatingSystemConfig refused, %d errors:", len(e.Errors))}
	for _, f := range e.Errors {
		lines = append(lines, "  "+shown(f))
	}
	return strings.Join(lines, "\n")
}

func shown(f *field.Error) string {
	if f.Field == "" {
		return f.ErrorBody()
	}
	return f.Field + ": " + f.ErrorBody()
}

// ExitCode is that of a configuration that can't be used.
func (e *DocumentError) ExitCode() int { return exitcode.Internal }

// List is the errors.
func (e *DocumentError) List() field.ErrorList { return e.Errors }

// refusal is nil where there is no error.
func refusal(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return &DocumentError{errs}
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

// allUnits are the units of both lists with their paths, in the order in which
// they count.
func (d *Document) allUnits() []located[v1alpha1.Unit] {
	return append(locate(unitsPath, d.Config.Spec.Units), locate(extensionUnitsPath, d.Config.Status.ExtensionUnits)...)
}

// allFiles are the files of both lists with their paths.
func (d *Document) allFiles() []located[v1alpha1.File] {
	return append(locate(filesPath, d.Config.Spec.Files), locate(extensionFilesPath, d.Config.Status.ExtensionFiles)...)
}

var (
	specPath           = field.NewPath("spec")
	unitsPath          = specPath.Child("units")
	filesPath          = specPath.Child("files")
	criPath            = specPath.Child("criConfig")
	statusPath         = field.NewPath("status")
	extensionUnitsPath = statusPath.Child("extensionUnits")
	extensionFilesPath = statusPath.Child("extensionFiles")
)

// located is a part of a document and where it stands.
type located[T any] struct {
	at *field.Path
	of *T
}

func locate[T any](at *field.Path, list []T) []located[T] {
	var out []located[T]
	for i := range list {
		out = append(out, located[T]{at.Index(i), &list[i]})
	}
	return out
}

func fieldNote(at *field.Path, reason string) desired.FieldNote {
	return desired.FieldNote{Path: at.String(), Reason: reason}
}
