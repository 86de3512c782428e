package node

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// filler puts a parsed text into Go values. Names count as they are written; every
// unknown name, name given twice and wrong type is an error with its path.
type filler struct {
	errs  field.ErrorList
	lines lines
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (f *filler) fill(into reflect.Value, from *yaml.Node, at *field.Path) {
	if at != nil {
		f.lines[at.String()] = from.Line
	}
	if from.Kind == yaml.ScalarNode && from.ShortTag() == "!!null" {
		return // null is absent
	}
	switch t := into.Type(); {
	case t == rawType:
		f.raw(into, from, at)
	case t.Kind() == reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		f.fill(into.Elem(), from, at)
	case t.Kind() == reflect.Struct:
		f.object(into, from, at)
	case t.Kind() == reflect.Map:
		f.texts(into, from, at)
	case t.Kind() == reflect.Slice:
		f.list(into, from, at)
	default:
		f.scalar(into, from, at)
	}
}

// members calls do for each member of an object that is there once.
func (f *filler) members(from *yaml.Node, at *field.Path, do func(name string, value *yaml.Node, at *field.Path)) {
	if from.Kind != yaml.MappingNode {
		f.wrongType(from, "an object", at)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			f.wrongType(key, "a name", at)
			continue
		}
		below := child(at, key.Value)
		if seen[key.Value] {
			f.add(field.Duplicate(below, key.Value), key)
			continue
		}
		seen[key.Value] = true
		do(key.Value, value, below)
	}
}

func child(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

func (f *filler) object(into reflect.Value, from *yaml.Node, at *field.Path) {
	fields := fieldsOf(into.Type())
	f.members(from, at, func(name string, value *yaml.Node, below *field.Path) {
		index, known := fields[name]
		if !known {
			f.add(field.Forbidden(below, "this version of berth knows no such field"), value)
			return
		}
		f.fill(into.Field(index), value, below)
	})
}

// fieldsOf are the fields of a struct by their names in a document.
func fieldsOf(t reflect.Type) map[string]int {
	out := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = i
	}
	return out
}

// texts is a map of strings; its paths have the keys in brackets, since a key may
// have dots.
func (f *filler) texts(into reflect.Value, from *yaml.Node, at *field.Path) {
	into.Set(reflect.MakeMap(into.Type()))
	f.members(from, at, func(name string, value *yaml.Node, _ *field.Path) {
		v := reflect.New(into.Type().Elem()).Elem()
		f.fill(v, value, at.Key(name))
		into.SetMapIndex(reflect.ValueOf(name), v)
	})
}

func (f *filler) list(into reflect.Value, from *yaml.Node, at *field.Path) {
	if from.Kind != yaml.SequenceNode {
		f.wrongType(from, "a list", at)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(from.Content), len(from.Content)))
	for i, m := range from.Content {
		f.fill(into.Index(i), m, at.Index(i))
	}
}

func (f *filler) scalar(into reflect.Value, from *yaml.Node, at *field.Path) {
	tag := from.ShortTag()
	switch kind := into.Kind(); {
	case from.Kind != yaml.ScalarNode:
		f.wrongType(from, "a "+goName(kind), at)
	case kind == reflect.String && tag == "!!str":
		into.SetString(from.Value)
	case kind == reflect.Bool && tag == "!!bool":
		into.SetBool(strings.EqualFold(from.Value, "true"))
	case kind == reflect.Int32 && tag == "!!int":
		n, err := strconv.ParseInt(from.Value, 10, 32)
		if err != nil {
			f.add(field.Invalid(at, from.Value, "expected a whole number below 2147483648"), from)
			return
		}
		into.SetInt(n)
	case kind == reflect.String:
		f.wrongType(from, "a string: put it into quotes", at)
	default:
		f.wrongType(from, "a "+goName(kind), at)
	}
}

func goName(k reflect.Kind) string {
	return map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "number"}[k]
}

// raw is an object that somebody else reads: it is handed on as it is.
func (f *filler) raw(into reflect.Value, from *yaml.Node, at *field.Path) {
	if from.Kind != yaml.MappingNode {
		f.wrongType(from, "an object", at)
		return
	}
	value := f.tree(from, at)
	text, err := json.Marshal(value)
	if err != nil {
		f.add(invalid(at, err.Error()), from)
		return
	}
	into.SetBytes(text)
}

func (f *filler) tree(from *yaml.Node, at *field.Path) any {
	f.lines[at.String()] = from.Line
	switch from.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		f.members(from, at, func(name string, value *yaml.Node, below *field.Path) {
			out[name] = f.tree(value, below)
		})
		return out
	case yaml.SequenceNode:
		out := []any{}
		for i, m := range from.Content {
			out = append(out, f.tree(m, at.Index(i)))
		}
		return out
	case yaml.ScalarNode:
		return f.plain(from, at)
	}
	f.wrongType(from, "a value", at)
	return nil
}

// plain is a scalar as JSON has it. Numbers stay as they are written, where JSON
// can write them so.
func (f *filler) plain(from *yaml.Node, at *field.Path) any {
	if tag := from.ShortTag(); tag == "!!str" || tag == "!!timestamp" || tag == "!!binary" {
		return from.Value
	}
	if n := json.Number(from.Value); json.Valid([]byte(n)) && (from.ShortTag() == "!!int" || from.ShortTag() == "!!float") {
		return n
	}
	var v any
	if err := from.Decode(&v); err != nil {
		f.add(invalid(at, err.Error()), from)
	}
	return v
}

func (f *filler) wrongType(from *yaml.Node, want string, at *field.Path) {
	e := invalid(at, fmt.Sprintf("expected %s, got %s", want, typeName(from)))
	e.Type = field.ErrorTypeTypeInvalid
	f.add(e, from)
}

// add is an error at a node of the text.
func (f *filler) add(e *field.Error, at *yaml.Node) {
	if e.Field != "" {
		f.lines[e.Field] = at.Line
	}
	f.errs = append(f.errs, e)
}
