package aks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
)

// refusal makes a state that can't be a refusal of the document, by the fields
// that its resources come from. Where something else is wrong with the state the
// document is not to blame.
func (t *translation) refusal(doc *Document, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("translate configuration: %w", err)
	}
	out := &DocumentError{Code: decode.CodeRefused}
	for _, e := range joined.Unwrap() {
		at, ok := errors.AsType[*desired.ResourceError](e)
		if !ok {
			return fmt.Errorf("translate configuration: %w", err)
		}
		out.Errors = append(out.Errors, FieldError{Error: &field.Error{
			Type: field.ErrorTypeInvalid, Field: t.blamed(doc, at), BadValue: field.OmitValueType{}, Detail: at.Error(),
		}})
	}
	return out
}

// spellErrors gives what a part refuses the words of the document.
func spellErrors(doc *Document, err error) {
	if refused, ok := errors.AsType[*DocumentError](err); ok {
		for _, f := range refused.Errors {
			f.Field = doc.Path(f.Field)
		}
	}
}

// blamed is the flag of kubelet that names a path, else the resource's field.
func (t *translation) blamed(doc *Document, e *desired.ResourceError) string {
	flags := t.cfg.GetKubeletConfig().GetKubeletFlags()
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if at := flags[flag]; at != "" && (e.Path == at || strings.HasPrefix(e.Path, at+"/")) {
			return doc.Path("kubelet_config.kubelet_flags[" + flag + "]")
		}
	}
	return e.Field
}
