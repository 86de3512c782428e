package osc

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// Translate says what the machine must be for a document that passed Decode. The
// state is sealed. Values of Secrets are taken from the facts: SecretRefs says
// which; where one is missing the document is refused, with a *DocumentError.
func Translate(doc *Document, facts component.Facts) (*desired.State, error) {
	t := &translation{doc: doc, facts: facts, state: &desired.State{Owner: desired.OwnerOSC}}
	t.files()
	t.units()
	t.cri()
	t.runtimeFirst()
	t.pulls()
	t.account()
	if err := refusal(t.errs); err != nil {
		return nil, err
	}
	if err := t.state.Seal(); err != nil {
		return nil, blamed(err)
	}
	return t.state, nil
}

// translation is one run of Translate.
type translation struct {
	doc   *Document
	facts component.Facts
	state *desired.State
	errs  field.ErrorList
}

// add puts a resource into the state; at is the field that it comes from.
func (t *translation) add(at *field.Path, r desired.Resource) {
	r.Order().Field = at.String()
	t.state.Add(r)
}

// blamed makes a state that can't be a refusal of the document, by the fields
// that its resources come from.
func blamed(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("translate OperatingSystemConfig: %w", err)
	}
	out := &DocumentError{}
	for _, e := range joined.Unwrap() {
		at, ok := errors.AsType[*desired.ResourceError](e)
		if !ok {
			return fmt.Errorf("translate OperatingSystemConfig: %w", err)
		}
		out.Errors = append(out.Errors, &field.Error{
			Type: field.ErrorTypeInvalid, Field: at.Field, BadValue: field.OmitValueType{}, Detail: at.Error(),
		})
	}
	return out
}
