package osc

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/desired"
)

// filler puts a parsed text into Go values: names count as they are written,
// every wrong type is an error with its path, every unknown name a note.
type filler struct {
	errs  field.ErrorList
	notes []desired.FieldNote
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	timeType = reflect.TypeFor[metav1.Time]()
	metaType = reflect.TypeFor[metav1.ObjectMeta]()
)

func (f *filler) fill(into reflect.Value, from any, at *field.Path) {
	if from == nil {
		return // null is absent
	}
	switch t := into.Type(); {
	case t == rawType, t == timeType, t == metaType:
		f.whole(into, from, at)
	case t.Kind() == reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		f.fill(into.Elem(), from, at)
	case t.Kind() == reflect.Struct:
		f.object(into, from, at)
	case t.Kind() == reflect.Slice:
		f.list(into, from, at)
	case t.Kind() == reflect.Uint32:
		f.number(into, from, at)
	default:
		f.scalar(into, from, at)
	}
}

// whole leaves it to a type how it is read.
func (f *filler) whole(into reflect.Value, from any, at *field.Path) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into.Addr().Interface())
	}
	if err != nil {
		f.errs = append(f.errs, invalid(at, err.Error()))
	}
}

func (f *filler) object(into reflect.Value, from any, at *field.Path) {
	members, ok := from.(map[string]any)
	if !ok {
		f.wrongType(from, "an object", at)
		return
	}
	fields := fieldsOf(into.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		index, known := fields[name]
		if !known {
			f.notes = append(f.notes, desired.FieldNote{Path: at.Child(name).String(), Reason: "this version of berth does not know the field; it has no effect"})
			continue
		}
		f.fill(into.FieldByIndex(index), members[name], at.Child(name))
	}
}

// fieldsOf are the fields of a struct by their names in a document.
func fieldsOf(t reflect.Type) map[string][]int {
	out := map[string][]int{}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if options == "inline" {
			for inner, index := range fieldsOf(t.Field(i).Type) {
				out[inner] = append([]int{i}, index...)
			}
			continue
		}
		out[name] = []int{i}
	}
	return out
}

func (f *filler) list(into reflect.Value, from any, at *field.Path) {
	members, ok := from.([]any)
	if !ok {
		f.wrongType(from, "a list", at)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(members), len(members)))
	for i, m := range members {
		f.fill(into.Index(i), m, at.Index(i))
	}
}

func (f *filler) number(into reflect.Value, from any, at *field.Path) {
	n, ok := from.(json.Number)
	if !ok {
		f.wrongType(from, "a number", at)
		return
	}
	v, err := strconv.ParseUint(n.String(), 10, 32)
	if err != nil {
		f.errs = append(f.errs, field.Invalid(at, n, "must be a whole number from 0 to 4294967295"))
		return
	}
	into.SetUint(v)
}

func (f *filler) scalar(into reflect.Value, from any, at *field.Path) {
	switch v := from.(type) {
	case string:
		if into.Kind() == reflect.String {
			into.SetString(v)
			return
		}
	case bool:
		if into.Kind() == reflect.Bool {
			into.SetBool(v)
			return
		}
	}
	f.wrongType(from, "a "+into.Kind().String(), at)
}

func (f *filler) wrongType(from any, want string, at *field.Path) {
	e := invalid(at, fmt.Sprintf("expected %s, got %s", want, typeName(from)))
	e.Type = field.ErrorTypeTypeInvalid
	f.errs = append(f.errs, e)
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
