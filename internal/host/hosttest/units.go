package hosttest

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// HangingUnit is the unit whose start does not end.
const HangingUnit = "berth-conformance-hanging.service"

const unitDir = "/etc/systemd/system"

const sleeper = "[Service]\nExecStart=/usr/bin/sleep infinity\nExecReload=/usr/bin/true\n"

var units = []testCase{
	{"unit that does not exist", unitNotFound},
	{"unit runs", unitRuns},
	{"unit restarts", unitRestarts},
	{"unit fails", unitFails},
	{"unit without its program", unitWithoutProgram},
	{"unit without anything to run", unitBad},
	{"unit masked", unitMasked},
	{"unit ends", unitEnds},
	{"unit with a condition", unitCondition},
	{"definition changes", unitChanges},
	{"enabled, disabled, static", unitFileStates},
	{"requirement fails", unitDependency},
	{"restart takes followers along", unitFollowers},
	{"reload", unitReload},
	{"start that hangs", unitHangs},
	{"enqueue", unitEnqueue},
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

func unitNotFound(t *testing.T, h host.Host, _ string) {
	const name = "berth-conformance-none.service"
	st := state(t, h, name, "not-found", "inactive", "dead")
	if st.InvocationID != "" || !st.ActiveEnter.IsZero() || st.FragmentPath != "" || st.UnitFileState != "" || st.NeedDaemonReload {
		t.Errorf("status %+v", st)
	}
	for what, do := range map[string]func(context.Context, string) error{
		"start": h.StartUnit, "restart": h.RestartUnit, "enqueue": h.EnqueueStart,
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
	must(t, h.StartUnit(t.Context(), name))
	st := state(t, h, name, "loaded", "active", "running")
	if len(st.InvocationID) != 32 || st.MainPID == 0 || st.Result != "success" || st.FragmentPath != path.Join(unitDir, name) {
		t.Errorf("status %+v", st)
	}
	if st.ActiveEnter.Before(before) || st.ExecMainStart.Before(before) || st.ActiveEnter.After(h.Now()) {
		t.Errorf("times %v, %v; began %v", st.ActiveEnter, st.ExecMainStart, before)
	}
	must(t, h.StartUnit(t.Context(), name))
	if diff := cmp.Diff(st, unitStatus(t, h, name)); diff != "" {
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

func unitChanges(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	must(t, h.StartUnit(t.Context(), name))
	needs := func(what string, want bool) {
		t.Helper()
		if got := unitStatus(t, h, name).NeedDaemonReload; got != want {
			t.Errorf("%s: NeedDaemonReload is %v", what, got)
		}
	}
	needs("fresh", false)
	tick()
	put(t, h, path.Join(unitDir, name), "# changed\n"+sleeper)
	needs("new definition", true)
	must(t, h.DaemonReload(t.Context()))
	needs("reloaded", false)

	dropIns := path.Join(unitDir, name+".d")
	must(t, h.Mkdir(dropIns, 0o755))
	put(t, h, dropIns+"/20-b.conf", "[Service]\nEnvironment=A=b\n")
	put(t, h, dropIns+"/10-a.conf", "[Service]\nEnvironment=A=a\n")
	t.Cleanup(func() {
		_ = h.Remove(dropIns + "/10-a.conf")
		_ = h.Remove(dropIns + "/20-b.conf")
		_ = h.Remove(dropIns)
	})
	must(t, h.DaemonReload(t.Context())) // a new directory need not be noticed
	needs("reloaded with drop-ins", false)
	if diff := cmp.Diff([]string{dropIns + "/10-a.conf", dropIns + "/20-b.conf"}, unitStatus(t, h, name).DropInPaths); diff != "" {
		t.Error(diff)
	}
	must(t, h.Remove(dropIns+"/20-b.conf"))
	needs("drop-in gone", true)
	must(t, h.DaemonReload(t.Context()))
	put(t, h, dropIns+"/20-b.conf", "[Service]\nEnvironment=A=b\n")
	needs("new drop-in", true)
	state(t, h, name, "loaded", "active", "running")
}

// tick lets the clock of the file system advance: it counts in jiffies, and two
// writes in one have the same time.
func tick() { time.Sleep(20 * time.Millisecond) }

func unitFileStates(t *testing.T, h host.Host, _ string) {
	const plain = "berth-conformance-static.service"
	const installed = "berth-conformance-installed.service"
	define(t, h, map[string]string{
		plain:     sleeper,
		installed: sleeper + "[Install]\nWantedBy=multi-user.target\n",
	})
	is := func(name, want string) {
		t.Helper()
		if got := unitStatus(t, h, name).UnitFileState; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	is(plain, "static")
	is(installed, "disabled")
	_, err := host.MkdirAll(h, unitDir+"/multi-user.target.wants")
	must(t, err)
	link := unitDir + "/multi-user.target.wants/" + installed
	must(t, h.Symlink("../"+installed, link))
	t.Cleanup(func() { _ = h.Remove(link) })
	must(t, h.DaemonReload(t.Context()))
	is(installed, "enabled")
	must(t, h.Remove(link))
	must(t, h.DaemonReload(t.Context()))
	is(installed, "disabled")
}

func unitDependency(t *testing.T, h host.Host, _ string) {
	const broken = "berth-conformance-broken.service"
	const user = "berth-conformance-user.service"
	const wisher = "berth-conformance-wisher.service"
	define(t, h, map[string]string{
		broken: "[Service]\nType=oneshot\nExecStart=/usr/bin/false\n",
		user:   "[Unit]\nRequires=" + broken + "\nAfter=" + broken + "\n" + sleeper,
		wisher: "[Unit]\nWants=" + broken + " berth-conformance-none.service\nAfter=" + broken + "\n" + sleeper,
	})
	st := jobFails(t, h.StartUnit(t.Context(), user), "dependency")
	if st.ActiveState != "inactive" {
		t.Errorf("status %+v", st)
	}
	must(t, h.StartUnit(t.Context(), wisher))
	state(t, h, wisher, "loaded", "active", "running")
	state(t, h, broken, "loaded", "failed", "failed")
}

func unitFollowers(t *testing.T, h host.Host, _ string) {
	const base = "berth-conformance-base.service"
	const user = "berth-conformance-user.service"
	define(t, h, map[string]string{
		base: sleeper,
		user: "[Unit]\nRequires=" + base + "\nAfter=" + base + "\n" + sleeper,
	})
	must(t, h.StartUnit(t.Context(), user))
	state(t, h, base, "loaded", "active", "running")
	first := state(t, h, user, "loaded", "active", "running")
	must(t, h.RestartUnit(t.Context(), base))
	second := eventually(t, h, user, "active")
	if first.InvocationID == second.InvocationID {
		t.Error("the follower was not restarted")
	}
	must(t, h.StopUnit(t.Context(), base))
	eventually(t, h, user, "inactive")
}

// eventually waits until a unit whose job is not waited for is in a state.
func eventually(t *testing.T, h host.Systemd, name, active string) host.UnitStatus {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		st := unitStatus(t, h, name)
		if st.ActiveState == active {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %s, want %s", name, st.ActiveState, active)
		}
	}
}

func unitReload(t *testing.T, h host.Host, _ string) {
	const can = "berth-conformance-can.service"
	const cannot = "berth-conformance-cannot.service"
	define(t, h, map[string]string{can: sleeper, cannot: "[Service]\nExecStart=/usr/bin/sleep infinity\n"})
	must(t, h.StartUnit(t.Context(), can))
	must(t, h.StartUnit(t.Context(), cannot))
	before := unitStatus(t, h, can)
	must(t, h.ReloadUnit(t.Context(), can))
	if after := state(t, h, can, "loaded", "active", "running"); after.InvocationID != before.InvocationID {
		t.Error("a reload began a new run")
	}
	if err := h.ReloadUnit(t.Context(), cannot); !errors.Is(err, host.ErrNotApplicable) {
		t.Errorf("reload of what can't: %v", err)
	}
}

func defineHanging(t *testing.T, h host.Host) {
	t.Helper()
	define(t, h, map[string]string{HangingUnit: "[Service]\nType=oneshot\nExecStart=/usr/bin/sleep infinity\n"})
}

func unitHangs(t *testing.T, h host.Host, _ string) {
	defineHanging(t, h)
	if err := h.StartUnit(within(t, 10*short), HangingUnit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start: %v", err)
	}
	state(t, h, HangingUnit, "loaded", "activating", "start")
	must(t, h.StopUnit(t.Context(), HangingUnit))
	if st := state(t, h, HangingUnit, "loaded", "failed", "failed"); st.Result != "signal" {
		t.Errorf("status %+v", st)
	}
}

func unitEnqueue(t *testing.T, h host.Host, _ string) {
	defineHanging(t, h)
	name := defineOne(t, h, sleeper)
	must(t, h.EnqueueStart(t.Context(), HangingUnit))
	eventually(t, h, HangingUnit, "activating")
	must(t, h.EnqueueStart(t.Context(), name))
	first := eventually(t, h, name, "active")
	must(t, h.EnqueueRestart(t.Context(), name))
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		st := unitStatus(t, h, name)
		if st.ActiveState == "active" && st.InvocationID != first.InvocationID {
			return
		}
	}
	t.Error("the restart did not take place")
}

func unitStartLimit(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=2\n"+sleeper)
	must(t, h.StartUnit(t.Context(), name))
	must(t, h.RestartUnit(t.Context(), name))
	st := jobFails(t, h.RestartUnit(t.Context(), name), "failed")
	if st.Result != "start-limit-hit" || st.ActiveState != "failed" {
		t.Errorf("status %+v", st)
	}
	must(t, h.ResetFailed(t.Context(), name))
	must(t, h.StartUnit(t.Context(), name))
}

func unitCancelled(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.StartUnit(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	if _, err := h.Unit(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("unit: %v", err)
	}
	state(t, h, name, "loaded", "inactive", "dead")
}

func unitParallel(t *testing.T, h host.Host, _ string) {
	defs := map[string]string{}
	for _, c := range "abcdefgh" {
		defs["berth-conformance-"+string(c)+".service"] = sleeper
	}
	define(t, h, defs)
	var group sync.WaitGroup
	ids := make(chan string, len(defs))
	for name := range defs {
		group.Go(func() {
			err := errors.Join(h.StartUnit(t.Context(), name), h.RestartUnit(t.Context(), name))
			st, uerr := h.Unit(t.Context(), name)
			if err := errors.Join(err, uerr); err != nil || st.ActiveState != "active" {
				t.Errorf("%s: %v, %s", name, err, st.ActiveState)
			}
			ids <- st.InvocationID
		})
	}
	group.Wait()
	close(ids)
	all := slices.Sorted(func(yield func(string) bool) {
		for id := range ids {
			if !yield(id) {
				return
			}
		}
	})
	if got := len(slices.Compact(all)); got != len(defs) {
		t.Errorf("%d different runs of %d", got, len(defs))
	}
}
