package hosttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

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

// unitBegun: who starts a unit is told when its program runs, before the job has ended, and not
// of one that a condition keeps from running.
func unitBegun(t *testing.T, h host.Host, _ string) {
	const service = "berth-conformance-begun.service"
	const skipped = "berth-conformance-skipped.service"
	defineHanging(t, h)
	define(t, h, map[string]string{service: sleeper, skipped: "[Unit]\nConditionPathExists=/berth-conformance-none\n" + sleeper})
	told := make(chan struct{}, 9)
	ctx := host.WithBegun(within(t, 10*short), func() { told <- struct{}{} })
	if err := h.StartUnit(ctx, HangingUnit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start: %v", err)
	}
	ctx = host.WithBegun(t.Context(), func() { told <- struct{}{} })
	must(t, h.StartUnit(ctx, service))
	must(t, h.StartUnit(ctx, skipped))
	if len(told) != 2 {
		t.Errorf("told %d times that a program runs, want 2", len(told))
	}
	must(t, h.RestartUnit(ctx, service))
	if len(told) < 3 {
		t.Errorf("told %d times that a program runs, want 3", len(told))
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
	must(t, h.Enqueue(t.Context(), "start", HangingUnit))
	eventually(t, h, HangingUnit, "activating")
	must(t, h.StopUnit(t.Context(), HangingUnit))
	if err := h.Enqueue(t.Context(), "start", "berth-conformance-none.service"); !errors.Is(err, host.ErrNoSuchUnit) {
		t.Errorf("a start of what is not there: %v", err)
	}
}

// unitQueued: a unit that runs is restarted, and reads its files again, by jobs that nobody waits
// for.
func unitQueued(t *testing.T, h host.Host, _ string) {
	const name = "berth-conformance-queued.service"
	define(t, h, map[string]string{name: sleeper})
	must(t, h.StartUnit(t.Context(), name))
	first := state(t, h, name, "loaded", "active", "running")
	must(t, h.Enqueue(t.Context(), "reload", name))
	if now := eventually(t, h, name, "active"); now.InvocationID != first.InvocationID {
		t.Error("a reload began another run")
	}
	must(t, h.Enqueue(t.Context(), "restart", name))
	for end := time.Now().Add(soon); unitStatus(t, h, name).InvocationID == first.InvocationID; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not restarted")
		}
	}
	eventually(t, h, name, "active")
}

// unitJoins: what changed since a start began is not noticed by a second one.
func unitJoins(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{JoinedUnit: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/sleep 1\n"})
	begin := func() host.UnitStatus {
		t.Helper()
		if err := h.StartUnit(within(t, 4*short), JoinedUnit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("start: %v", err)
		}
		return state(t, h, JoinedUnit, "loaded", "activating", "start")
	}
	first := begin()
	must(t, h.StartUnit(within(t, soon), JoinedUnit))
	st := state(t, h, JoinedUnit, "loaded", "active", "exited")
	if st.InvocationID != first.InvocationID || !st.ExecMainStart.Equal(first.ExecMainStart) || !st.ActiveEnter.After(st.ExecMainStart) {
		t.Errorf("began as %+v, joined %+v", first, st)
	}
	must(t, h.StopUnit(t.Context(), JoinedUnit))
	second := begin()
	must(t, h.RestartUnit(within(t, soon), JoinedUnit))
	if st := state(t, h, JoinedUnit, "loaded", "active", "exited"); st.InvocationID == second.InvocationID {
		t.Error("a restart joined the start")
	}
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
