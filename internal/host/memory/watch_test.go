package memory

import (
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// TestKillEndsWatching: the channel of a process that died is closed, and what
// another process watches goes on.
func TestKillEndsWatching(t *testing.T) {
	h := New()
	old, err := h.Watch(t.Context(), host.Watched{Names: []string{"/srv/f"}})
	must(t, err)
	h.Kill()
	for range old {
		continue
	}
	fresh, err := h.Watch(t.Context(), host.Watched{Names: []string{"/srv/f"}, Units: []string{"x.service"}})
	must(t, err)
	h.Put("/srv/f", "1", 0o644)
	if e := <-fresh; e != (host.Event{Name: "/srv/f"}) {
		t.Errorf("told %+v", e)
	}
	h.MissEvents()
	if e := <-fresh; !e.Missed {
		t.Errorf("told %+v", e)
	}
	must(t, h.DaemonReload(t.Context()))
	if e := <-fresh; e != (host.Event{Unit: "x.service"}) {
		t.Errorf("told %+v", e)
	}
}

func TestKillForgetsWhatWasTold(t *testing.T) {
	h := New()
	h.Put("/etc/systemd/system/x.service", "[Unit]\nConditionPathExists=/none\n[Service]\nType=oneshot\nExecStart=/usr/bin/x\n", 0o644)
	must(t, h.StartUnit(t.Context(), "x.service"))
	told := func() bool {
		st, err := h.Unit(t.Context(), "x.service")
		must(t, err)
		return !st.ConditionTime.IsZero()
	}
	if !told() {
		t.Error("the process that started the unit knows nothing of its condition")
	}
	h.Kill()
	if told() {
		t.Error("another process knows what systemd has forgotten")
	}
}
