package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

var kinds = []testCase{
	{"socket and its service", socketUnit},
	{"socket without its service", socketAlone},
	{"timer", timerUnit},
	{"path", pathUnit},
	{"mount unit", mountUnit},
	{"mount unit that can't be", mountRefused},
	{"slice", sliceUnit},
	{"target", targetUnit},
	{"definitions that lack what their type needs", lacking},
}

// socketUnit: systemd refuses to start a socket whose service runs, and a restart
// has stopped it by then.
func socketUnit(t *testing.T, h host.Host, _ string) {
	const socket, service = "berth-conformance-s.socket", "berth-conformance-s.service"
	define(t, h, map[string]string{socket: "[Socket]\nListenStream=/run/berth-conformance.sock\n", service: sleeper})
	start(t, h, socket)
	st := state(t, h, socket, "loaded", "active", "listening")
	lists(t, "triggers", st.Triggers, service)
	lists(t, "triggered by", unitStatus(t, h, service).TriggeredBy, socket)
	if st.ServiceType != "" || st.CanReload || !st.CanStart || st.Result != "success" {
		t.Errorf("status %+v", st)
	}
	start(t, h, service)
	state(t, h, socket, "loaded", "active", "running")
	run := unitStatus(t, h, service).InvocationID
	jobFails(t, h.RestartUnit(t.Context(), socket), "failed")
	state(t, h, socket, "loaded", "inactive", "dead")
	jobFails(t, h.StartUnit(t.Context(), socket), "failed")
	if st := state(t, h, service, "loaded", "active", "running"); st.InvocationID != run {
		t.Error("the service restarted")
	}
	must(t, h.StopUnit(t.Context(), service))
	must(t, h.RestartUnit(t.Context(), socket))
	start(t, h, service)
	must(t, h.RestartUnit(t.Context(), service))
	state(t, h, socket, "loaded", "active", "running")
	must(t, h.StopUnit(t.Context(), service))
	state(t, h, socket, "loaded", "active", "listening")
	must(t, h.StopUnit(t.Context(), socket))
	start(t, h, service)
	state(t, h, socket, "loaded", "inactive", "dead")
}

func socketAlone(t *testing.T, h host.Host, _ string) {
	const alone, accepts = "berth-conformance-alone.socket", "berth-conformance-accepts.socket"
	define(t, h, map[string]string{
		alone:                                "[Socket]\nListenStream=/run/berth-conformance.sock\n",
		accepts:                              "[Socket]\nListenStream=/run/berth-conformance-accepts.sock\nAccept=yes\n",
		"berth-conformance-accepts@.service": sleeper,
	})
	jobFails(t, h.StartUnit(t.Context(), alone), "failed")
	state(t, h, alone, "loaded", "inactive", "dead")
	start(t, h, accepts)
	lists(t, "triggers", state(t, h, accepts, "loaded", "active", "listening").Triggers)
}

func timerUnit(t *testing.T, h host.Host, _ string) {
	const timer, service, alone = "berth-conformance-t.timer", "berth-conformance-other.service", "berth-conformance-alone.timer"
	define(t, h, map[string]string{
		timer: "[Timer]\nOnCalendar=yearly\nUnit=" + service + "\n", service: sleeper, alone: "[Timer]\nOnCalendar=yearly\n",
	})
	start(t, h, timer)
	lists(t, "triggers", state(t, h, timer, "loaded", "active", "waiting").Triggers, service)
	first := unitStatus(t, h, timer)
	start(t, h, service)
	must(t, h.RestartUnit(t.Context(), timer))
	if st := unitStatus(t, h, timer); st.ActiveState != "active" || st.InvocationID == first.InvocationID {
		t.Errorf("restarted: %+v", st)
	}
	must(t, h.StopUnit(t.Context(), timer))
	state(t, h, timer, "loaded", "inactive", "dead")
	state(t, h, service, "loaded", "active", "running")
	jobFails(t, h.StartUnit(t.Context(), alone), "failed")
}

func pathUnit(t *testing.T, h host.Host, dir string) {
	const name, service = "berth-conformance-p.path", "berth-conformance-p.service"
	define(t, h, map[string]string{name: "[Path]\nPathExists=" + dir + "/flag\n", service: sleeper})
	start(t, h, name)
	st := state(t, h, name, "loaded", "active", "waiting")
	lists(t, "triggers", st.Triggers, service)
	lists(t, "triggered by", unitStatus(t, h, service).TriggeredBy, name)
	must(t, h.RestartUnit(t.Context(), name))
	if again := state(t, h, name, "loaded", "active", "waiting"); again.InvocationID == st.InvocationID {
		t.Error("a restart began no new run")
	}
	must(t, h.StopUnit(t.Context(), name))
	state(t, h, name, "loaded", "inactive", "dead")
}

func mountUnit(t *testing.T, h host.Host, _ string) {
	const name, where = "mnt-berth.mount", "/mnt/berth"
	const content = "[Mount]\nWhat=tmpfs\nWhere=" + where + "\nType=tmpfs\n"
	define(t, h, map[string]string{name: content})
	t.Cleanup(func() { _ = h.Remove(where) })
	start(t, h, name)
	first := state(t, h, name, "loaded", "active", "mounted")
	if len(on(t, h, where)) != 1 || !first.CanReload {
		t.Errorf("mounted: %+v, %+v", on(t, h, where), first)
	}
	tick()
	put(t, h, definition(name), content+"Options=size=1M\n")
	outdated(t, h, "new options", name, true)
	reload(t, h)
	must(t, h.ReloadUnit(t.Context(), name))
	if st := state(t, h, name, "loaded", "active", "mounted"); st.InvocationID != first.InvocationID {
		t.Error("a reload began a new run")
	}
	must(t, h.RestartUnit(t.Context(), name))
	if st := state(t, h, name, "loaded", "active", "mounted"); st.InvocationID == first.InvocationID {
		t.Error("a restart began no new run")
	}
	must(t, h.Unmount(t.Context(), where))
	eventually(t, h, name, "inactive")
	start(t, h, name)
	takeAway(t, h, name)
	reload(t, h)
	if st := state(t, h, name, "loaded", "active", "mounted"); st.FragmentPath != "" {
		t.Errorf("without its definition %+v", st)
	}
	must(t, h.StopUnit(t.Context(), name))
	if len(on(t, h, where)) != 0 {
		t.Error("still mounted")
	}
}

func mountRefused(t *testing.T, h host.Host, _ string) {
	const name = "mnt-berth.mount"
	define(t, h, map[string]string{name: "[Mount]\nWhat=none\nWhere=/mnt/berth\nType=berthfs\n"})
	t.Cleanup(func() { _ = h.Remove("/mnt/berth") })
	if st := jobFails(t, h.StartUnit(t.Context(), name), "failed"); st.ActiveState != "failed" || st.Result != "exit-code" {
		t.Errorf("status %+v", st)
	}
	if _, err := h.Lstat("/mnt/berth"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func sliceUnit(t *testing.T, h host.Host, _ string) {
	const slice, service = "berthconformance.slice", "berth-conformance-in.service"
	define(t, h, map[string]string{slice: "[Slice]\nTasksMax=100\n", service: sleeper + "Slice=" + slice + "\n"})
	start(t, h, service)
	st := state(t, h, slice, "loaded", "active", "active")
	lists(t, "dependents", st.Dependents, service)
	if st.Result != "" {
		t.Errorf("result %q", st.Result)
	}
	before := unitStatus(t, h, service)
	must(t, h.RestartUnit(t.Context(), slice))
	until(t, h, service, func(st host.UnitStatus) bool {
		return st.ActiveState == "active" && st.InvocationID != before.InvocationID
	})
	must(t, h.StopUnit(t.Context(), slice))
	eventually(t, h, service, "inactive")
	state(t, h, "berthnobody.slice", "loaded", "inactive", "dead")
}

// targetUnit: what a target wants starts with it, what it requires takes it along.
func targetUnit(t *testing.T, h host.Host, _ string) {
	const wanting, requiring = "berth-conformance-wanting.target", "berth-conformance-requiring.target"
	define(t, h, map[string]string{base: sleeper, wanting: "[Unit]\nWants=" + base + "\n", requiring: "[Unit]\nRequires=" + base + "\n"})
	start(t, h, wanting)
	run := state(t, h, base, "loaded", "active", "running").InvocationID
	must(t, h.RestartUnit(t.Context(), wanting))
	must(t, h.StopUnit(t.Context(), wanting))
	state(t, h, wanting, "loaded", "inactive", "dead")
	if st := state(t, h, base, "loaded", "active", "running"); st.InvocationID != run {
		t.Error("the service restarted with the target")
	}
	start(t, h, requiring)
	before := unitStatus(t, h, requiring)
	must(t, h.RestartUnit(t.Context(), base))
	until(t, h, requiring, func(st host.UnitStatus) bool {
		return st.ActiveState == "active" && st.InvocationID != before.InvocationID
	})
	must(t, h.StopUnit(context.Background(), base))
	eventually(t, h, requiring, "inactive")
}

func lacking(t *testing.T, h host.Host, _ string) {
	defs := map[string]string{
		"berth-conformance.socket": "[Socket]\n", "berth-conformance.timer": "[Timer]\n", "berth-conformance.path": "[Path]\n",
		"mnt-berth.mount": "[Mount]\nWhat=tmpfs\nWhere=/mnt/elsewhere\n",
	}
	define(t, h, defs)
	for name := range defs {
		if st := unitStatus(t, h, name); st.LoadState != "bad-setting" || st.CanStart {
			t.Errorf("%s: %+v", name, st)
		}
		if err := h.StartUnit(t.Context(), name); !errors.Is(err, host.ErrBadUnit) {
			t.Errorf("start %s: %v", name, err)
		}
	}
}
