package converge_test

import (
	"testing"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// What a run that was cut off owes to what ran, it owes in the boot in which that ran: a
// unit that nobody wants at boot stays down, be it the machine or userspace alone that
// was started anew.
func TestOwedEndsWithTheBoot(t *testing.T) {
	const beside = "beside.service"
	state := func(config string) *desired.State {
		return sealed(t, managed("/etc/containerd/config.toml", config),
			&desired.Unit{Base: desired.Base{After: []desired.ID{desired.FileID("/etc/containerd/config.toml")}}, Name: "containerd.service",
				Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{"/etc/containerd/config.toml"}})
	}
	// cutOff is a machine with a run that was stopped after so many effects, if it had as many.
	cutOff := func(effects int) (*machine, bool) {
		h := newMachine()
		h.Put("/usr/bin/beside", "program", 0o755)
		h.Put("/usr/lib/systemd/system/"+beside, "[Unit]\nRequires=containerd.service\nAfter=containerd.service\n[Service]\nExecStart=/usr/bin/beside\n", 0o644)
		starts := 0
		h.Behave(beside, func(memory.Start) memory.Outcome {
			if starts++; starts == 2 { // with containerd, which restarts it: berth has to start it again
				return memory.Outcome{Status: 1}
			}
			return memory.Outcome{}
		})
		runs(t, h, state("version = 3\n"))
		must(h.StartUnit(tctx, beside))
		in := effect.Inject(h, effect.Plan{{At: effects, Kind: effect.StopAfter}})
		_, _ = engine(in, &providers{}).Apply(t.Context(), state("version = 4\n"))
		h.Kill()
		return h, in.Hit() != nil
	}
	again := func(h *machine) bool {
		runs(t, h, state("version = 4\n"))
		st, err := h.Unit(tctx, beside)
		must(err)
		return st.ActiveState == "active"
	}
	owed := 0
	for n := 1; ; n++ {
		h, hit := cutOff(n)
		if !hit {
			break
		}
		if st, err := h.Unit(tctx, beside); err != nil || st.ActiveState != "active" {
			owed++
		}
		if !again(h) {
			t.Errorf("after effect %d, run again: it does not run", n)
		}
		for m := 1; ; m += stride {
			h, _ := cutOff(n)
			in := effect.Inject(h, effect.Plan{{At: m, Kind: effect.StopAfter}})
			_, _ = engine(in, &providers{}).Apply(t.Context(), state("version = 4\n"))
			h.Kill()
			if in.Hit() == nil {
				break
			}
			if !again(h) {
				t.Errorf("after effect %d, and effect %d of the next run: it does not run", n, m)
			}
		}
		for name, reboot := range reboots {
			h, _ := cutOff(n)
			reboot(h)
			if again(h) {
				t.Errorf("after effect %d, %s: it runs", n, name)
			}
		}
	}
	if owed == 0 {
		t.Error("no run owes anything")
	}
}
