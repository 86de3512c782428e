package osc

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
)

// without are the fields that have no effect on a node; metadata is the cluster's.
var without = []string{
	"spec.class", "spec.purpose", "spec.type",
	"spec.files[].content.transmitUnencoded", "status.extensionFiles[].content.transmitUnencoded",
}

// TestEveryFieldCounts: every other field of the API, set otherwise in the sample,
// changes the state, what is told of it, or whether the document is taken.
func TestEveryFieldCounts(t *testing.T) {
	var tree map[string]any
	b, err := json.Marshal(decoded(t, string(sample(t, "full.yaml"))).Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	before, effect := outcome(t, tree), map[string]bool{}
	each(tree, "", func(name string, set func(any), old any) {
		for _, other := range others(old) {
			set(other)
			effect[name] = effect[name] || outcome(t, tree) != before
			set(old)
		}
	})
	var idle []string
	for _, name := range leaves(reflect.TypeFor[specAndStatus](), "") {
		if !someBelow(effect, name) {
			idle = append(idle, name)
		}
	}
	want := slices.Sorted(slices.Values(without))
	if diff := cmp.Diff(want, idle); diff != "" {
		t.Errorf("without effect, or not in the sample (-want +got):\n%s", diff)
	}
}

// specAndStatus is the document without what every object of a cluster has.
type specAndStatus struct {
	Spec   v1alpha1.Spec   `json:"spec"`
	Status v1alpha1.Status `json:"status"`
}

// outcome is all that a document comes to.
func outcome(t *testing.T, tree any) string {
	t.Helper()
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Decode(b)
	if err != nil {
		return err.Error()
	}
	st, err := Translate(doc, machine)
	if err != nil {
		return err.Error()
	}
	for _, r := range st.Resources {
		r.Order().Field = ""
	}
	out, err := json.Marshal([]any{st, doc.Notes, st.Unused, st.Partial})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// others are values of the same type, and none.
func others(old any) []any {
	switch old := old.(type) {
	case string:
		return []any{nil, "", "stop", "remove", "other"}
	case bool:
		return []any{nil, !old}
	case float64:
		return []any{nil, old + 1}
	}
	return []any{nil}
}

// each calls f for every value of a tree, by the names that lead there.
func each(v any, at string, f func(name string, set func(any), old any)) {
	visit := func(name string, inner any, set func(any)) {
		f(name, set, inner)
		each(inner, name, f)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			visit(strings.TrimPrefix(at+"."+name, "."), v[name], func(other any) { v[name] = other })
		}
	case []any:
		for i := range v {
			visit(at+"[]", v[i], func(other any) { v[i] = other })
		}
	}
}

// leaves are the fields of a type that hold no others.
func leaves(t reflect.Type, at string) []string {
	switch {
	case t == rawType, t == timeType:
		return []string{at}
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), at)
	case t.Kind() == reflect.Slice:
		return leaves(t.Elem(), at+"[]")
	case t.Kind() != reflect.Struct:
		return []string{at}
	}
	var out []string
	for name, index := range fieldsOf(t) {
		out = append(out, leaves(t.FieldByIndex(index).Type, strings.TrimPrefix(at+"."+name, "."))...)
	}
	slices.Sort(out)
	return out
}

// someBelow says whether a field has an effect, or some member of one that holds
// anything.
func someBelow(effect map[string]bool, name string) bool {
	for at, some := range effect {
		if some && (at == name || strings.HasPrefix(at, name+".") || strings.HasPrefix(at, name+"[]")) {
			return true
		}
	}
	return false
}
