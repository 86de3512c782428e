package converge_test

import (
	"context"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// goesOn is a machine on which systemd has begun to start a unit in the tick of the clock in
// which its files changed. That run has read them before, and fails by them.
type goesOn struct {
	*machine
	unit         string
	named, ended bool
}

// Rename implements host.FS.
func (g *goesOn) Rename(from, to string) error {
	g.named = g.named || to == "/etc/w.conf"
	return g.machine.Rename(from, to)
}

// Unit implements host.Systemd.
func (g *goesOn) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	st, err := g.machine.Unit(ctx, name)
	if name == g.unit && !g.ended {
		st.ActiveState, st.SubState, st.InvocationID = "activating", "auto-restart", "1"
		if g.named {
			st.SubState, st.InvocationID, st.ExecMainStart, st.ConditionTime = "start", "2", g.Now(), g.Now()
		}
	}
	return st, err
}

// StartUnit implements host.Systemd.
func (g *goesOn) StartUnit(ctx context.Context, name string, ahead ...string) error {
	if name != g.unit || g.ended {
		return g.machine.StartUnit(ctx, name, ahead...)
	}
	g.ended = true
	return &host.JobError{Unit: name, Job: "start", Result: "failed"}
}

// A start that joins one which fails by the files of before is no end: the unit starts with the
// present ones.
func TestAStartThatJoinsOneWithOldFiles(t *testing.T) {
	h := newMachine()
	h.Put("/usr/bin/w", "w", 0o755)
	h.Put("/usr/lib/systemd/system/w.service", "[Service]\nType=notify\nExecStart=/usr/bin/w\n", 0o644)
	must(h.DaemonReload(tctx))
	with := func(text string) *desired.State {
		conf := managed("/etc/w.conf", text)
		return sealed(t, conf, &desired.Unit{Base: desired.Base{After: []desired.ID{conf.ID()}}, Name: "w.service", Activation: desired.Started,
			Triggers: []string{conf.Path}})
	}
	runs(t, h, with("bad"))
	st := with("good")
	if _, err := engine(&goesOn{machine: h, unit: "w.service"}, &providers{}).Apply(t.Context(), st); err != nil {
		t.Error(err)
	}
	if got, err := h.Unit(tctx, "w.service"); err != nil || got.ActiveState != "active" {
		t.Errorf("it is %s, %v", got.ActiveState, err)
	}
	converged(t, h, st)
}
