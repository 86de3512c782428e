package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/unitcheck"
	"github.com/berth-dev/berth/internal/desired"
)

func TestUnitsThatAreToRun(t *testing.T) {
	yes, no := true, false
	st := &desired.State{}
	st.Add(&desired.File{Path: "/etc/a"},
		&desired.Unit{Name: "runs.service", Enablement: desired.Enabled, Activation: desired.Started},
		&desired.Unit{Name: "off.service", Enablement: desired.Disabled, Activation: desired.Stopped},
		&desired.Unit{Name: "stopped.service", Enablement: desired.Enabled, Activation: desired.Stopped},
		&desired.Unit{Name: "io.x.proxy@.service", Enablement: desired.Enabled},
		&desired.Unit{Name: "w@.service", Activation: desired.Started}, // of a template there is nothing that runs
		&desired.Unit{Name: "mentioned.service", Activation: desired.Started})
	want := []unitcheck.Unit{{Name: "runs.service", Enable: &yes}, {Name: "off.service", Enable: &no}, {Name: "stopped.service", Enable: &no}, {Name: "mentioned.service"}}
	if d := cmp.Diff(want, units(st)); d != "" {
		t.Error(d)
	}
	if got := units(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
