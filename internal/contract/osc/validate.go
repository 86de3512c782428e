package osc

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/desired"
)

// validation finds what a reader of the document would refuse. "The API's
// admission" is the validation that the published API has; a document that comes
// past it is none that the cluster manager wrote.
type validation struct {
	doc   *Document
	errs  field.ErrorList
	notes []desired.FieldNote
}

func (v *validation) refuse(at *field.Path, format string, args ...any) {
	v.errs = append(v.errs, invalid(at, fmt.Sprintf(format, args...)))
}

func (v *validation) require(at *field.Path, value string) bool {
	if value == "" {
		v.errs = append(v.errs, field.Required(at, ""))
	}
	return value != ""
}

func (v *validation) note(at *field.Path, reason string) {
	v.notes = append(v.notes, fieldNote(at, reason))
}

func (v *validation) document() {
	v.kind()
	v.files()
	v.units()
	v.cycles()
	v.cri()
}

// kind refuses what the API's decoder has no type for.
func (v *validation) kind() {
	c := v.doc.Config
	if c.APIVersion != v1alpha1.APIVersion {
		v.errs = append(v.errs, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{v1alpha1.APIVersion}))
	}
	if c.Kind != v1alpha1.Kind {
		v.errs = append(v.errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{v1alpha1.Kind}))
	}
}
