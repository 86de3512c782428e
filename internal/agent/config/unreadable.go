package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// unreadable is a text that is not of the form that it should have. Where the reader
// knows the field, the error is that field's.
func unreadable(file string, err error) *Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return &Error{file, field.ErrorList{field.TypeInvalid(field.NewPath(wrong.Field), field.OmitValueType{}, fmt.Sprintf("is a %s, must be a %s", words.Replace(wrong.Value), wordFor(wrong.Type)))}}
	}
	text := strings.TrimPrefix(rootless(err).Error(), "json: ")
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = "must be a map of fields"
	}
	return &Error{file, field.ErrorList{{Type: field.ErrorTypeInvalid, BadValue: field.OmitValueType{}, Detail: text}}}
}

// words are what a person calls values of JSON.
var words = strings.NewReplacer("object", "map", "array", "list")

// wordFor is what a person calls a type of JSON.
func wordFor(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "map"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	}
	return "number"
}
