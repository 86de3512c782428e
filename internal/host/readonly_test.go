package host_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestReadOnlyHasNoEffect calls every method of a host with values of no meaning: none
// but Run has an effect.
func TestReadOnlyHasNoEffect(t *testing.T) {
	inner := memory.New()
	recorder := effect.Record(inner)
	h := host.ReadOnly{Host: recorder}
	before := fmt.Sprint(inner.Tree())
	v := reflect.ValueOf(h)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if strings.HasPrefix(name, "Watch") || name == "Sleep" || name == "Run" {
			continue
		}
		m := v.Method(i)
		var args []reflect.Value
		for j := range m.Type().NumIn() {
			switch at := m.Type().In(j); {
			case m.Type().IsVariadic() && j == m.Type().NumIn()-1:
			case at == reflect.TypeFor[context.Context]():
				args = append(args, reflect.ValueOf(t.Context()))
			case at.Kind() == reflect.String:
				args = append(args, reflect.ValueOf("/etc/systemd").Convert(at))
			default:
				args = append(args, reflect.Zero(at))
			}
		}
		m.Call(args)
	}
	if effects := recorder.Lines(); len(effects) > 0 || fmt.Sprint(inner.Tree()) != before {
		t.Errorf("effects: %q", effects)
	}
	if err := h.Remove("/etc"); !errors.Is(err, host.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}
