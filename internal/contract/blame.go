package contract

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// blaming is an error that blames fields of a document.
type blaming interface {
	error
	List() field.ErrorList
}

// Blames says whether an error blames fields of the document, and not the machine.
func Blames(err error) bool {
	_, ok := errors.AsType[blaming](err)
	return ok
}
