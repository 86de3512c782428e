package converge_test

import (
	"context"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// reader notes what is to be read ahead of a start.
type reader struct {
	host.Host
	ahead []string
}

func (r *reader) StartUnit(ctx context.Context, name string, ahead ...string) error {
	r.ahead = append(r.ahead, ahead...)
	return r.Host.StartUnit(ctx, name, ahead...)
}

// What a unit starts with is read ahead when it starts, and not again while it runs.
func TestReadAhead(t *testing.T) {
	const name, program = "new.service", "/opt/bin/kubelet"
	h := &reader{Host: newMachine()}
	u := &desired.Unit{Name: name, Activation: desired.Started, ReadAhead: []string{program}}
	st := sealed(t, managed("/etc/systemd/system/"+name, "[Service]\nExecStart="+program+"\n"), u)
	for range 2 {
		if _, err := converge.New(converge.Options{Host: h, Command: "test", Workers: 1}).Apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(h.ahead, []string{program}) {
			t.Errorf("read ahead: %q", h.ahead)
		}
	}
}
