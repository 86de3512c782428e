package osc

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/component"
)

// counting are the facts that a translation may depend on: provision.GatherForChanges
// gathers them, but for what the cluster says and whether there is an agent.
var counting = []string{"Hostname", "ContainerdVersion", "ContainerdConfig", "ContainerdFiles", "SecretData", "Program", "Agent"}

// TestFactsThatCount: a document comes to the same whatever else the machine is.
func TestFactsThatCount(t *testing.T) {
	doc := decoded(t, string(sample(t, "full.yaml")))
	want, err := Translate(doc, machine)
	if err != nil {
		t.Fatal(err)
	}
	kinds := reflect.TypeFor[component.Facts]()
	for i := range kinds.NumField() {
		name := kinds.Field(i).Name
		if slices.Contains(counting, name) {
			continue
		}
		other := machine
		set(t, reflect.ValueOf(&other).Elem().Field(i), name)
		got, err := Translate(doc, other)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s counts: %v", name, err)
		}
	}
}

// set makes a value another one.
func set(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.1")))
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case v.Kind() == reflect.Struct:
		set(t, v.Field(0), name)
	default:
		t.Fatalf("%s is a %s", name, v.Type())
	}
}
