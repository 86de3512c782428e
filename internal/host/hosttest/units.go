package hosttest

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// HangingUnit is the unit whose start does not end.
const HangingUnit = "berth-conformance-hanging.service"

// JoinedUnit is the unit that takes a second to start, where it is not restarted.
const JoinedUnit = "berth-conformance-joined.service"

const unitDir = "/etc/systemd/system"

const sleeper = "[Service]\nExecStart=/usr/bin/sleep infinity\nExecReload=/usr/bin/true\n"

var units = []testCase{
	{"unit that does not exist", unitNotFound},
	{"template is no unit", unitTemplateRefused},
	{"unit that is not loaded", unitUnloaded},
	{"unit that runs once unseen", unitOnce},
	{"units are listed", unitsListed},
	{"unit runs", unitRuns},
	{"unit restarts", unitRestarts},
	{"unit fails", unitFails},
	{"unit without its program", unitWithoutProgram},
	{"unit without anything to run", unitBad},
	{"unit masked", unitMasked},
	{"unit ends", unitEnds},
	{"unit with a condition", unitCondition},
	{"definition changes", unitChanges},
	{"definition replaced by an older file", unitOlderFiles},
	{"enabled, disabled, static", unitFileStates},
	{"requirement fails", unitDependency},
	{"restart takes followers along", unitFollowers},
	{"reload", unitReload},
	{"start that hangs", unitHangs},
	{"start tells that the program runs", unitBegun},
	{"jobs that nobody waits for", unitQueued},
	{"start joins the one under way", unitJoins},
	{"start limit", unitStartLimit},
	{"cancelled before", unitCancelled},
	{"many at once", unitParallel},
	{"systemd executes itself anew", unitReexec},
}

// define writes units ("name" → content) and loads them; they go when the test
// ends.
func define(t *testing.T, h host.Host, defs map[string]string) {
	t.Helper()
	for name, content := range defs {
		put(t, h, path.Join(unitDir, name), content)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for name := range defs {
			_ = h.StopUnit(ctx, name)
			_ = h.Remove(path.Join(unitDir, name))
			_ = h.ResetFailed(ctx, name)
		}
		_ = h.DaemonReload(ctx)
	})
	must(t, h.DaemonReload(t.Context()))
}

// defineOne is define of the unit berth-conformance.service.
func defineOne(t *testing.T, h host.Host, content string) string {
	t.Helper()
	const name = "berth-conformance.service"
	define(t, h, map[string]string{name: content})
	return name
}

func unitStatus(t *testing.T, h host.Systemd, name string) host.UnitStatus {
	t.Helper()
	st, err := h.Unit(t.Context(), name)
	must(t, err)
	return st
}

// state checks load, active and sub state.
func state(t *testing.T, h host.Systemd, name, load, active, sub string) host.UnitStatus {
	t.Helper()
	st := unitStatus(t, h, name)
	got := []string{st.Name, st.LoadState, st.ActiveState, st.SubState}
	if diff := cmp.Diff([]string{name, load, active, sub}, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	return st
}

// jobFails checks a job that ended with a result other than done.
func jobFails(t *testing.T, err error, result string) host.UnitStatus {
	t.Helper()
	var job *host.JobError
	if !errors.As(err, &job) {
		t.Fatalf("error %v (%T), want a *host.JobError", err, err)
	}
	if job.Result != result {
		t.Errorf("job result %q, want %q", job.Result, result)
	}
	return job.Status
}

// starter starts a unit that reads nothing ahead, in the shape of the other jobs.
func starter(h host.Host) func(context.Context, string) error {
	return func(ctx context.Context, name string) error { return h.StartUnit(ctx, name) }
}

func unitNotFound(t *testing.T, h host.Host, _ string) {
	const name = "berth-conformance-none.service"
	st := state(t, h, name, "not-found", "inactive", "dead")
	if st.InvocationID != "" || !st.ActiveEnter.IsZero() || st.FragmentPath != "" || st.UnitFileState != "" || st.NeedDaemonReload {
		t.Errorf("status %+v", st)
	}
	for what, do := range map[string]func(context.Context, string) error{
		"start": starter(h), "restart": h.RestartUnit,
	} {
		err := do(t.Context(), name)
		var refused *host.UnitError
		if !errors.Is(err, host.ErrNoSuchUnit) || !errors.As(err, &refused) || refused.Unit != name {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, h.StopUnit(t.Context(), name))
	must(t, h.ResetFailed(t.Context(), name))
	put(t, h, path.Join(unitDir, name), sleeper)
	t.Cleanup(func() { _ = h.Remove(path.Join(unitDir, name)) })
	if st := unitStatus(t, h, name); st.LoadState != "loaded" {
		t.Errorf("a unit that has come since is %s", st.LoadState)
	}
}

func unitRuns(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	before := h.Now().Truncate(time.Microsecond)
	state(t, h, name, "loaded", "inactive", "dead")
	must(t, h.StartUnit(t.Context(), name, unitDir, path.Join(unitDir, "none"), path.Join(unitDir, name)))
	st := state(t, h, name, "loaded", "active", "running")
	if len(st.InvocationID) != 32 || st.MainPID == 0 || st.Result != "success" || st.FragmentPath != path.Join(unitDir, name) {
		t.Errorf("status %+v", st)
	}
	if st.ActiveEnter.Before(before) || st.ExecMainStart.Before(before) || st.ActiveEnter.After(h.Now()) {
		t.Errorf("times %v, %v; began %v", st.ActiveEnter, st.ExecMainStart, before)
	}
	must(t, h.StartUnit(t.Context(), name))
	must(t, h.Sleep(t.Context(), 10*time.Millisecond))
	again := unitStatus(t, h, name)
	if st.ActiveFor < 0 || again.ActiveFor < st.ActiveFor+10*time.Millisecond {
		t.Errorf("active for %v, after 10 ms for %v", st.ActiveFor, again.ActiveFor)
	}
	again.ActiveFor = st.ActiveFor
	if diff := cmp.Diff(st, again); diff != "" {
		t.Errorf("a second start changed the unit:\n%s", diff)
	}
	must(t, h.StopUnit(t.Context(), name))
	st = state(t, h, name, "loaded", "inactive", "dead")
	if st.MainPID != 0 {
		t.Errorf("stopped, but main process %d", st.MainPID)
	}
	must(t, h.StopUnit(t.Context(), name))
}

func unitRestarts(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	must(t, h.RestartUnit(t.Context(), name))
	first := state(t, h, name, "loaded", "active", "running")
	must(t, h.RestartUnit(t.Context(), name))
	second := state(t, h, name, "loaded", "active", "running")
	if first.InvocationID == second.InvocationID || second.ActiveEnter.Before(first.ActiveEnter) {
		t.Errorf("restart: %+v, then %+v", first, second)
	}
	if second.NRestarts != 0 {
		t.Error("a restart that was asked for counts as one of systemd's own")
	}
}

func unitFails(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, "[Service]\nType=oneshot\nExecStart=/usr/bin/false\n")
	st := jobFails(t, h.StartUnit(t.Context(), name), "failed")
	if st.ActiveState != "failed" || st.Result != "exit-code" || st.ExecMainStatus != 1 {
		t.Errorf("status %+v", st)
	}
	state(t, h, name, "loaded", "failed", "failed")
	must(t, h.ResetFailed(t.Context(), name))
	state(t, h, name, "loaded", "inactive", "dead")
}

func unitWithoutProgram(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, "[Service]\nType=notify\nExecStart=/usr/bin/berth-no-such-program\n")
	st := jobFails(t, h.StartUnit(t.Context(), name), "failed")
	if st.ActiveState != "failed" || st.Result != "exit-code" || st.ExecMainStatus != 203 {
		t.Errorf("status %+v", st)
	}
}

func unitBad(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, "[Service]\nType=notify\n")
	if st := unitStatus(t, h, name); st.LoadState != "bad-setting" {
		t.Errorf("load state %s", st.LoadState)
	}
	if err := h.StartUnit(t.Context(), name); !errors.Is(err, host.ErrBadUnit) {
		t.Errorf("start: %v", err)
	}
}

func unitMasked(t *testing.T, h host.Host, _ string) {
	const name = "berth-conformance-masked.service"
	must(t, h.Symlink("/dev/null", path.Join(unitDir, name)))
	t.Cleanup(func() {
		_ = h.Remove(path.Join(unitDir, name))
		_ = h.DaemonReload(context.Background())
	})
	must(t, h.DaemonReload(t.Context()))
	st := state(t, h, name, "masked", "inactive", "dead")
	if st.UnitFileState != "masked" {
		t.Errorf("unit file state %q", st.UnitFileState)
	}
	if err := h.StartUnit(t.Context(), name); !errors.Is(err, host.ErrUnitMasked) {
		t.Errorf("start: %v", err)
	}
}

func unitEnds(t *testing.T, h host.Host, _ string) {
	const once = "berth-conformance-once.service"
	const stays = "berth-conformance-stays.service"
	define(t, h, map[string]string{
		once:  "[Service]\nType=oneshot\nExecStart=/usr/bin/true\n",
		stays: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=-/usr/bin/false\nExecStart=/usr/bin/true\n",
	})
	must(t, h.StartUnit(t.Context(), once))
	forgotten := eventually(t, h, once, "inactive")
	for end := time.Now().Add(soon); forgotten.InvocationID != "" && time.Now().Before(end); {
		forgotten = unitStatus(t, h, once)
	}
	if forgotten.InvocationID != "" || !forgotten.ExecMainStart.IsZero() || forgotten.Result != "success" {
		t.Errorf("a unit that nobody refers to is remembered: %+v", forgotten)
	}
	must(t, h.StartUnit(t.Context(), stays))
	if st := state(t, h, stays, "loaded", "active", "exited"); st.MainPID != 0 || st.ActiveEnter.IsZero() {
		t.Errorf("status %+v", st)
	}
}

func unitCondition(t *testing.T, h host.Host, dir string) {
	name := defineOne(t, h, "[Unit]\nConditionPathExists="+dir+"/flag\nConditionPathExists=!"+dir+"/stop\n"+sleeper)
	must(t, h.StartUnit(t.Context(), name))
	state(t, h, name, "loaded", "inactive", "dead")
	put(t, h, dir+"/flag", "")
	must(t, h.StartUnit(t.Context(), name))
	state(t, h, name, "loaded", "active", "running")
	must(t, h.StopUnit(t.Context(), name))
	put(t, h, dir+"/stop", "")
	must(t, h.StartUnit(t.Context(), name))
	state(t, h, name, "loaded", "inactive", "dead")
}
