package hosttest

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// CrashingUnit is the unit whose process ends at once, with an error.
const CrashingUnit = "berth-conformance-crashing.service"

var lifecycles = []testCase{
	{"oneshot that remains", oneshotRemains},
	{"oneshot that somebody refers to", oneshotReferred},
	{"condition that does not hold", conditionFails},
	{"assertion that does not hold", assertFails},
	{"skipped, and forgotten by systemd", skippedForgotten},
	{"crash loop", crashLoop},
	{"crash loop is stopped", crashLoopStopped},
	{"start in a crash loop at its limit", crashLoopLimit},
	{"restart in the pause of a crash loop", crashLoopPause},
	{"definition goes while it runs", definitionGoes},
	{"definition comes back while it runs", definitionComesBack},
	{"masked while it runs", maskedWhileRunning},
	{"jobs that a unit refuses", manualRefused},
}

func oneshotRemains(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n")
	if st := unitStatus(t, h, name); st.ServiceType != "oneshot" || !st.RemainAfterExit || !st.CanStart || st.CanReload {
		t.Errorf("before the start %+v", st)
	}
	start(t, h, name)
	first := state(t, h, name, "loaded", "active", "exited")
	start(t, h, name)
	if again := unitStatus(t, h, name); again.InvocationID != first.InvocationID {
		t.Error("a second start began a new run")
	}
	must(t, h.RestartUnit(t.Context(), name))
	if again := unitStatus(t, h, name); again.InvocationID == first.InvocationID {
		t.Error("a restart began no new run")
	}
	must(t, h.StopUnit(t.Context(), name))
	state(t, h, name, "loaded", "inactive", "dead")
}

// oneshotReferred: of a oneshot that another unit names systemd remembers the run.
func oneshotReferred(t *testing.T, h host.Host, _ string) {
	const once, other = "berth-conformance-once.service", "berth-conformance-other.service"
	define(t, h, map[string]string{
		once:  "[Service]\nType=oneshot\nExecStart=/usr/bin/true\n",
		other: "[Unit]\nAfter=" + once + "\n" + sleeper,
	})
	start(t, h, other, once)
	st := state(t, h, once, "loaded", "inactive", "dead")
	if st.InvocationID == "" || st.ExecMainStart.IsZero() || !st.ActiveEnter.IsZero() || !st.ConditionResult || st.ConditionTime.IsZero() {
		t.Errorf("status %+v", st)
	}
	must(t, h.StopUnit(t.Context(), other))
	until(t, h, once, func(st host.UnitStatus) bool { return st.InvocationID == "" })
}

// conditionFails: the job is done, the unit did not start, and what needs it does.
func conditionFails(t *testing.T, h host.Host, dir string) {
	const skipped, user = "berth-conformance-skipped.service", "berth-conformance-user.service"
	define(t, h, map[string]string{
		skipped: "[Unit]\nConditionPathExists=" + dir + "/flag\n" + sleeper,
		user:    "[Unit]\nRequires=" + skipped + "\nAfter=" + skipped + "\n" + sleeper,
	})
	start(t, h, user)
	state(t, h, user, "loaded", "active", "running")
	st := state(t, h, skipped, "loaded", "inactive", "dead")
	if st.ConditionResult || st.AssertResult || st.ConditionTime.IsZero() || st.InvocationID != "" || st.Result != "success" {
		t.Errorf("status %+v", st)
	}
	put(t, h, dir+"/flag", "")
	start(t, h, skipped)
	if st := unitStatus(t, h, skipped); !st.ConditionResult || !st.AssertResult {
		t.Errorf("status %+v", st)
	}
	must(t, h.Remove(dir+"/flag"))
	must(t, h.RestartUnit(t.Context(), skipped))
	if st := eventually(t, h, skipped, "inactive"); st.ConditionResult || st.InvocationID == "" {
		t.Errorf("restart: status %+v", st)
	}
}

func assertFails(t *testing.T, h host.Host, dir string) {
	const asserting, user = "berth-conformance-asserting.service", "berth-conformance-user.service"
	define(t, h, map[string]string{
		asserting: "[Unit]\nAssertPathExists=" + dir + "/flag\n" + sleeper,
		user:      "[Unit]\nRequires=" + asserting + "\nAfter=" + asserting + "\n" + sleeper,
	})
	for what, do := range map[string]error{
		"start": h.StartUnit(t.Context(), asserting), "restart": h.RestartUnit(t.Context(), asserting),
	} {
		if st := jobFails(t, do, "assert"); st.ActiveState != "inactive" {
			t.Errorf("%s: status %+v", what, st)
		}
	}
	jobFails(t, h.StartUnit(t.Context(), user), "dependency")
}

// skippedForgotten: the unit is nobody's, so that systemd drops it together with
// what its condition said; who started it is told all the same.
func skippedForgotten(t *testing.T, h host.Host, dir string) {
	name := defineOne(t, h, "[Unit]\nConditionPathExists="+dir+"/flag\n[Service]\nType=oneshot\nExecStart=/usr/bin/true\n")
	began := h.Now().Truncate(time.Microsecond)
	start(t, h, name)
	if st := state(t, h, name, "loaded", "inactive", "dead"); st.ConditionResult || st.ConditionTime.Before(began) {
		t.Errorf("skipped: %+v", st)
	}
	put(t, h, dir+"/flag", "")
	start(t, h, name)
	if st := state(t, h, name, "loaded", "inactive", "dead"); !st.ConditionResult || !st.AssertResult || st.ConditionTime.Before(began) {
		t.Errorf("ran: %+v", st)
	}
}

// crashLoop: the start job is done, the unit is not well.
func crashLoop(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{CrashingUnit: "[Service]\nRestart=always\nExecStart=/usr/bin/false\n"})
	start(t, h, CrashingUnit)
	st := until(t, h, CrashingUnit, func(st host.UnitStatus) bool { return st.SubState == "auto-restart" })
	if st.ActiveState != "activating" || st.Result != "exit-code" || st.ExecMainStatus != 1 {
		t.Errorf("status %+v", st)
	}
	until(t, h, CrashingUnit, func(again host.UnitStatus) bool {
		return again.NRestarts > 0 && again.InvocationID != st.InvocationID
	})
	end := until(t, h, CrashingUnit, func(st host.UnitStatus) bool { return st.ActiveState == "failed" })
	if end.NRestarts < 3 || end.Result != "exit-code" || end.SubState != "failed" {
		t.Errorf("at the start limit %+v", end)
	}
	must(t, h.ResetFailed(t.Context(), CrashingUnit))
	if st := state(t, h, CrashingUnit, "loaded", "inactive", "dead"); st.NRestarts != 0 {
		t.Errorf("after the reset %+v", st)
	}
}

func crashLoopStopped(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{CrashingUnit: "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=200ms\nExecStart=/usr/bin/false\n"})
	waits := func(st host.UnitStatus) bool { return st.SubState == "auto-restart" }
	start(t, h, CrashingUnit)
	first := until(t, h, CrashingUnit, waits)
	must(t, h.StartUnit(t.Context(), CrashingUnit))
	second := until(t, h, CrashingUnit, func(st host.UnitStatus) bool { return waits(st) && st.NRestarts > 0 })
	if first.InvocationID == second.InvocationID {
		t.Error("a start did not begin a new run")
	}
	must(t, h.StopUnit(t.Context(), CrashingUnit))
	state(t, h, CrashingUnit, "loaded", "inactive", "dead")
}

// crashLoopLimit: a start waits for systemd's own restart, and fails with it at the start
// limit. The result stays what the unit failed of. A reset in the pause takes the limit away.
func crashLoopLimit(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{CrashingUnit: "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=2\n[Service]\nRestart=always\nRestartSec=3\nExecStart=/usr/bin/false\n"})
	runTwice := func() host.UnitStatus {
		start(t, h, CrashingUnit)
		first := paused(t, h, "")
		must(t, h.RestartUnit(within(t, soon), CrashingUnit))
		return paused(t, h, first.InvocationID)
	}
	runTwice()
	if st := jobFails(t, h.StartUnit(within(t, soon), CrashingUnit), "failed"); st.ActiveState != "failed" || st.Result != "exit-code" {
		t.Errorf("a start: %+v", st)
	}
	must(t, h.ResetFailed(t.Context(), CrashingUnit))
	last := runTwice()
	must(t, h.ResetFailed(t.Context(), CrashingUnit))
	must(t, h.StartUnit(within(t, soon), CrashingUnit))
	if st := unitStatus(t, h, CrashingUnit); st.InvocationID == last.InvocationID {
		t.Error("no new run after the reset")
	}
	must(t, h.StopUnit(t.Context(), CrashingUnit))
}

// crashLoopPause: a restart does not wait for systemd's own. A reset does not end the pause.
func crashLoopPause(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{CrashingUnit: "[Service]\nRestart=always\nRestartSec=600\nExecStart=/usr/bin/false\n"})
	start(t, h, CrashingUnit)
	before := paused(t, h, "")
	must(t, h.RestartUnit(within(t, soon), CrashingUnit))
	paused(t, h, before.InvocationID)
	must(t, h.Sleep(t.Context(), time.Second/2))
	if st := state(t, h, CrashingUnit, "loaded", "activating", "auto-restart"); st.Result != "exit-code" {
		t.Errorf("in the pause %+v", st)
	}
	must(t, h.ResetFailed(t.Context(), CrashingUnit))
	if st := state(t, h, CrashingUnit, "loaded", "activating", "auto-restart"); st.Result != "success" {
		t.Errorf("after the reset %+v", st)
	}
	must(t, h.StopUnit(t.Context(), CrashingUnit))
}

// paused waits until CrashingUnit waits for systemd's restart after a run that is not old.
func paused(t *testing.T, h host.Host, old string) host.UnitStatus {
	t.Helper()
	return until(t, h, CrashingUnit, func(st host.UnitStatus) bool {
		return st.SubState == "auto-restart" && st.InvocationID != old
	})
}

// definitionGoes: what runs goes on, can be stopped, and not be started again.
func definitionGoes(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	start(t, h, name)
	must(t, h.RestartUnit(t.Context(), name))
	takeAway(t, h, name)
	outdated(t, h, "definition gone", name, true)
	reload(t, h)
	st := state(t, h, name, "not-found", "active", "running")
	if st.FragmentPath != "" || st.NeedDaemonReload || st.CanStart || st.ServiceType != "" || len(st.Needs) > 0 || st.UnitFileState != "" {
		t.Errorf("status %+v", st)
	}
	got, err := h.ListUnits(t.Context(), name)
	if err != nil || len(got) != 1 || got[0].LoadState != "not-found" {
		t.Errorf("listed %v, %v", got, err)
	}
	for what, err := range map[string]error{"start": h.StartUnit(t.Context(), name), "restart": h.RestartUnit(t.Context(), name)} {
		if !errors.Is(err, host.ErrNoSuchUnit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, h.StopUnit(t.Context(), name))
	state(t, h, name, "not-found", "inactive", "dead")
}

func definitionComesBack(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	start(t, h, name)
	before := unitStatus(t, h, name)
	takeAway(t, h, name)
	reload(t, h)
	put(t, h, definition(name), sleeper)
	state(t, h, name, "error", "active", "running")
	reload(t, h)
	if after := state(t, h, name, "loaded", "active", "running"); after.InvocationID != before.InvocationID {
		t.Error("another run")
	}
}

// maskedWhileRunning: systemd does not notice the mask before a reload.
func maskedWhileRunning(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	start(t, h, name)
	takeAway(t, h, name)
	must(t, h.Symlink("/dev/null", definition(name)))
	outdated(t, h, "masked by a link", name, false)
	reload(t, h)
	if st := state(t, h, name, "masked", "active", "running"); st.FragmentPath != definition(name) || st.CanStart {
		t.Errorf("status %+v", st)
	}
	for what, err := range map[string]error{
		"start": h.StartUnit(t.Context(), name), "restart": h.RestartUnit(t.Context(), name), "reload": h.ReloadUnit(t.Context(), name),
	} {
		if !errors.Is(err, host.ErrUnitMasked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, h.StopUnit(t.Context(), name))
	state(t, h, name, "masked", "inactive", "dead")
}

func manualRefused(t *testing.T, h host.Host, _ string) {
	const noStart, noStop = "berth-conformance-nostart.target", "berth-conformance-nostop.target"
	define(t, h, map[string]string{noStart: "[Unit]\nRefuseManualStart=yes\n", noStop: "[Unit]\nRefuseManualStop=yes\n"})
	if st := unitStatus(t, h, noStart); st.CanStart || st.LoadState != "loaded" {
		t.Errorf("status %+v", st)
	}
	start(t, h, noStop)
	for what, err := range map[string]error{
		"start": h.StartUnit(t.Context(), noStart), "stop": h.StopUnit(t.Context(), noStop), "restart": h.RestartUnit(t.Context(), noStop),
	} {
		if !errors.Is(err, host.ErrOnlyByDependency) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
