package provision

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

// unitOf is a machine with the unit that provisions, enabled or not.
func unitOf(enabled bool) *memory.Host {
	h := machineOf(`{}`)
	h.Put(bootInstance, "vm-1\n", 0o644)
	h.Program("/usr/bin/true", func(host.Command) host.Output { return host.Output{} })
	h.Put("/usr/lib/systemd/system/"+report.ServiceUnit,
		"[Service]\nType=exec\nExecStart=/usr/bin/true\nRemainAfterExit=yes\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.Put("/usr/lib/systemd/system/multi-user.target", "[Unit]\nDescription=x\n", 0o644)
	if enabled {
		h.PutLink("/usr/lib/systemd/system/"+report.ServiceUnit, "/etc/systemd/system/multi-user.target.wants/"+report.ServiceUnit, 0)
	}
	return h
}

// TestWaitForTheRunThatIsOwed: the result of an earlier run is none of the run that
// is on its way, or that this boot owes.
func TestWaitForTheRunThatIsOwed(t *testing.T) {
	start := func(t *testing.T, h *memory.Host) {
		if err := h.StartUnit(t.Context(), report.ServiceUnit); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		h       *memory.Host
		earlier string
		// before the wait begins, and after it has.
		before, after func(*testing.T, *memory.Host)
	}{
		"an interrupted run was started again": {unitOf(true), "247", start, nil},
		"a killed run was started again":       {unitOf(true), "137", start, nil},
		"a reboot in a run":                    {unitOf(true), "247", anotherBoot, start},
		"an operator repeats a good run":       {unitOf(true), "0", goesOn, nil},
		"an operator repeats a failure":        {unitOf(false), "51", goesOn, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writeResult(t, c.h, "vm-1", c.earlier)
				if c.before != nil {
					c.before(t, c.h)
				}
				time.AfterFunc(time.Minute, func() {
					if c.after != nil {
						c.after(t, c.h)
					}
				})
				time.AfterFunc(2*time.Minute, func() {
					writeResult(t, c.h, "vm-1", "34")
					_ = c.h.Remove(progressPath)
				})
				begun, out := time.Now(), &bytes.Buffer{}
				code, err := Wait(t.Context(), waitOptions(ticking{c.h}, out))
				if took := time.Since(begun); code != 34 || err != nil || took < 2*time.Minute || took > 2*time.Minute+lookEvery {
					t.Errorf("code %d, %v after %s, printed %s", code, err, took, out)
				}
			})
		})
	}
}

// anotherBoot is one in which the unit has not started yet.
func anotherBoot(t *testing.T, h *memory.Host) {
	b, err := h.ReadFile(report.SentinelPath)
	if err != nil {
		t.Fatal(err)
	}
	h.Put(report.SentinelPath, strings.ReplaceAll(string(b), report.BootID(h), "an earlier one"), 0o600)
}

// goesOn is a run that has not taken the result before it away yet.
func goesOn(t *testing.T, h *memory.Host) {
	if _, err := lock(t.Context(), h, "berth provision"); err != nil {
		t.Error(err)
	}
	h.Put(progressPath, `{"command":"berth provision","doing":"read x"}`, 0o600)
}

// noSystemd is a machine without a service manager.
type noSystemd struct{ host.Host }

func (noSystemd) Unit(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{}, host.ErrNoSystemd
}

// restarting is a machine on which systemd starts the unit by itself.
type restarting struct{ host.Host }

func (restarting) Unit(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{LoadState: "loaded", ActiveState: "activating", SubState: "auto-restart", NRestarts: 4, ExecMainStart: time.Now()}, nil
}

// TestWaitForNoRun: where none comes, the last result is the result.
func TestWaitForNoRun(t *testing.T) {
	for name, h := range map[string]host.Host{
		"the unit is not enabled":     unitOf(false),
		"there is no unit":            machineOf(`{}`),
		"there is no service manager": noSystemd{unitOf(true)},
		"there is no configuration": func() host.Host {
			h := unitOf(true)
			if err := h.Remove(report.ConfigPath); err != nil {
				t.Fatal(err)
			}
			return h
		}(),
		"an operator's run in this boot":  unitOf(true),
		"systemd started it often enough": restarting{unitOf(true)},
		"it was stopped in this boot": func() host.Host {
			h := unitOf(true)
			err := errors.Join(h.StartUnit(t.Context(), "multi-user.target"), h.StartUnit(t.Context(), report.ServiceUnit), h.StopUnit(t.Context(), report.ServiceUnit))
			if err != nil {
				t.Fatal(err)
			}
			return h
		}(),
		"a killed run left its notice": func() host.Host {
			h := unitOf(false)
			h.Put(progressPath, `{"command":"berth provision"}`, 0o600)
			return h
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			writeResult(t, h, "vm-1", "247")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errNoResult)
			defer cancel()
			out := &bytes.Buffer{}
			if code, err := Wait(ctx, waitOptions(h, out)); code != 247 || err != nil {
				t.Errorf("code %d, %v, printed %s", code, err, out)
			}
		})
	}
}

// TestWaitForASkippedUnit: a unit whose condition does not hold runs no more in
// this boot.
func TestWaitForASkippedUnit(t *testing.T) {
	h := unitOf(true)
	h.Put("/etc/systemd/system/"+report.ServiceUnit+".d/x.conf", "[Unit]\nConditionPathExists=/nowhere\n", 0o644)
	writeResult(t, h, "vm-1", "247")
	anotherBoot(t, h)
	if err := errors.Join(h.StartUnit(t.Context(), "multi-user.target"), h.StartUnit(t.Context(), report.ServiceUnit)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errNoResult)
	defer cancel()
	out := &bytes.Buffer{}
	if code, err := Wait(ctx, waitOptions(h, out)); code != 247 || err != nil {
		t.Errorf("code %d, %v, printed %s", code, err, out)
	}
}

// TestProgress: a run tells what it does for as long as it has no result.
func TestProgress(t *testing.T) {
	h := machineOf(`{}`)
	if p, ok := Underway(h); ok {
		t.Errorf("before: %s", p)
	}
	var said []string
	o := options(h)
	o.Status = func(s string) { said = append(said, s) }
	end := underway(t, o)
	p, ok := Underway(h)
	if !ok || p.Command != "berth provision" || p.PID == 0 || p.Doing == "" {
		t.Errorf("in it: %+v, %v", p, ok)
	}
	for told := time.Now(); p.Doing == "read "+report.ConfigPath && time.Since(told) < time.Minute; p, _ = Underway(h) {
		time.Sleep(progressEvery / 10)
	}
	if p.Doing != "apply the configuration" {
		t.Errorf("it does not tell that it goes on: %s", p)
	}
	if code := end(); code != 0 {
		t.Errorf("code %d", code)
	}
	if p, ok := Underway(h); ok {
		t.Errorf("afterwards: %s", p)
	}
	if last := said[len(said)-1]; last != "done, reached registered" {
		t.Errorf("status %q", said)
	}
	o.Boot = true
	if code := Provision(t.Context(), o); code != 0 {
		t.Errorf("code %d", code)
	}
	if last := said[len(said)-1]; last != "nothing to do: provisioning of this machine has ended with exit code 0 ("+report.SentinelPath+
		"); this repeats it: berth provision --provision-config="+report.ConfigPath {
		t.Errorf("status %q", last)
	}
}
