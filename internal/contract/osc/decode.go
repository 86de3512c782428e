package osc

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
)

// Decode reads and validates a document. Its error is a *DocumentError with every
// error.
func Decode(data []byte) (*Document, error) {
	tree, err := parse(data)
	if err != nil {
		return nil, refusal(field.ErrorList{invalid(nil, err.Error())})
	}
	f := &filler{}
	doc := &Document{Config: &v1alpha1.OperatingSystemConfig{}}
	f.fill(reflect.ValueOf(doc.Config).Elem(), tree, nil)
	if err := refusal(f.errs); err != nil {
		return nil, err
	}
	v := &validation{doc: doc, notes: f.notes}
	v.document()
	doc.Notes = v.notes
	return doc, refusal(v.errs)
}
