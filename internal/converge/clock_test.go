package converge_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// A clock that is set back between two writes hides no restart and invents none:
// what a unit was started with is told by content.
func TestClockSetBack(t *testing.T) {
	st := func(content string) *desired.State {
		return sealed(t, managed("/etc/conf", content), managed(override, containerdUnit+"#mine\n"), started("containerd.service", "/etc/conf"))
	}
	for name, by := range map[string]time.Duration{"an hour": -time.Hour, "a year": -365 * 24 * time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			runs(t, h, st("1\n"))
			h.ForgetJobs()
			h.Advance(by)
			runs(t, h, st("1\n"))
			if got := joinJobs(h); got != "" {
				t.Errorf("nothing changed, and there is %q", got)
			}
			runs(t, h, st("2\n"))
			if got := joinJobs(h); got != "restart containerd.service\n" {
				t.Errorf("jobs %q", got)
			}
			converged(t, h, st("2\n"))
			h.Advance(2 * by)
			h.Put("/etc/conf", "2\n", 0o644) // written again, as it was
			h.ForgetJobs()
			runs(t, h, st("2\n"))
			if got := joinJobs(h); got != "" {
				t.Errorf("written again, and there is %q", got)
			}
		})
	}
}

// The same of a definition: systemd compares times, and berth what it holds.
func TestClockSetBackBeforeADefinition(t *testing.T) {
	h := newMachine()
	st := func(v string) *desired.State {
		return sealed(t, managed(override, containerdUnit+"#"+v+"\n"), started("containerd.service"))
	}
	runs(t, h, st("1"))
	h.Advance(-24 * time.Hour)
	h.ForgetJobs()
	runs(t, h, st("2"))
	converged(t, h, st("2"))
	jobs := h.Jobs()
	if got := joinJobs(h); got != "restart containerd.service\n" {
		t.Fatalf("jobs %q", got)
	}
	h.ForgetJobs()
	must(h.DaemonReload(tctx))
	must(h.RestartUnit(tctx, "containerd.service"))
	if again := h.Jobs(); jobs[0].Definition != again[0].Definition {
		t.Error("it restarted with the old definition")
	}
}
