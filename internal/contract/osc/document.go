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

// DocumentError holds every fault of a document that is refused. It shows no
// content of files.
type DocumentError struct{ Faults field.ErrorList }

// Error names the faults with their paths.
func (e *DocumentError) Error() string {
	if len(e.Faults) == 1 {
		return "OperatingSystemConfig refused: " + shown(e.Faults[0])
	}
	lines := []string{fmt.Sprintf("OperatingSystemConfig refused, %d faults:", len(e.Faults))}
	for _, f := range e.Faults {
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

// List is the faults.
func (e *DocumentError) List() field.ErrorList { return e.Faults }

// refusal is nil where there is no fault.
func refusal(faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return &DocumentError{faults}
}

// invalid is a fault that does not show the value: it may be a secret. Without a
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
