package converge_test

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A run that failed tells what it came to, and not what it would have done then.
func TestBegun(t *testing.T) {
	const first, second = "first.service", "second.service"
	unit := func(name string, after ...desired.ID) *desired.Unit {
		return &desired.Unit{Base: desired.Base{After: after}, Name: name, Activation: desired.Started}
	}
	fragment := func(name string) *desired.File {
		return managed("/etc/systemd/system/"+name, "[Service]\nExecStart=/usr/bin/program\n")
	}
	st := sealed(t, managed("/etc/a", "1"), fragment(first), fragment(second),
		unit(first), unit(second, desired.UnitID(first)))
	ids := func(as []converge.Action) (out []desired.ID) {
		for _, a := range as {
			out = append(out, a.ID)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	machine := func(status int32) *machine {
		h := newMachine()
		h.Put("/usr/bin/program", "program", 0o755)
		h.Behave(first, func(memory.Start) memory.Outcome { return memory.Outcome{Status: status} })
		return h
	}
	names := []desired.ID{"file:/etc/a", "file:/etc/systemd/system/" + first, "file:/etc/systemd/system/" + second}
	for name, tc := range map[string]struct {
		status int32
		want   []desired.ID
	}{
		"all":           {want: append(slices.Clone(names), "unit:"+first, "unit:"+second)},
		"a unit failed": {status: 1, want: append(slices.Clone(names), "unit:"+first)},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := engine(machine(tc.status), &providers{}).Apply(t.Context(), st)
			if (err != nil) != (tc.status != 0) {
				t.Error(err)
			}
			if got := ids(res.Begun); !slices.Equal(got, tc.want) {
				t.Errorf("begun %v, want %v", got, tc.want)
			}
		})
	}
	in := effect.Inject(machine(0), effect.Plan{{At: 1, Kind: effect.Fail, Err: errAway}})
	if res, err := engine(in, &providers{}).Apply(t.Context(), st); err == nil || len(res.Begun) > 0 {
		t.Errorf("%v, begun %v", err, res.Begun)
	}
}
