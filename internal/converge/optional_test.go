package converge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A unit that the machine does without fails no run: the run tells of it, and the next
// one tries again.
func TestOptionalUnit(t *testing.T) {
	for _, optional := range []bool{false, true} {
		m := memory.New()
		m.Put("/usr/lib/systemd/system/exporter.service", "[Service]\nType=exec\nExecStart=/usr/bin/exporter\n[Install]\nWantedBy=multi-user.target\n", 0o644)
		m.Put("/usr/bin/exporter", "", 0o755)
		fails := true
		m.Behave("exporter.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: map[bool]int32{true: 3}[fails]} })
		st := &desired.State{Owner: desired.OwnerAKS}
		st.Add(&desired.Unit{Name: "exporter.service", Enablement: desired.Enabled, Activation: desired.Started, Optional: optional})
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		e := converge.New(converge.Options{Host: m})
		res, err := e.Apply(t.Context(), st)
		if _, failed := errors.AsType[*host.JobError](err); failed == optional || optional && err != nil {
			t.Errorf("optional %v: %v", optional, err)
		}
		if !optional {
			continue
		}
		if len(res.Plan.Remarks) != 1 || !strings.Contains(res.Plan.Remarks[0], "exporter.service") {
			t.Errorf("the run does not tell of it: %q", res.Plan.Remarks)
		}
		fails = false
		if _, err := e.Apply(t.Context(), st); err != nil || m.Units()["exporter.service"].ActiveState != "active" {
			t.Errorf("%v, %+v", err, m.Units()["exporter.service"])
		}
		if plan, err := e.Plan(t.Context(), st); err != nil || !plan.Empty() {
			t.Errorf("%+v, %v", plan, err)
		}
	}
}
