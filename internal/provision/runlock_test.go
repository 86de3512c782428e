package provision

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// underway starts a run that stays in its apply until end is called, which
// returns its exit code.
func underway(t *testing.T, o Options) (end func() int) {
	t.Helper()
	inside, release, code := make(chan struct{}), make(chan struct{}), make(chan int)
	o.Apply = func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
		close(inside)
		<-release
		return &converge.Result{Plan: &converge.Plan{}}, nil
	}
	go func() { code <- Provision(t.Context(), o) }()
	<-inside
	return func() int { close(release); return <-code }
}

// TestASecondRunTouchesNothing: what it has to say is its own; the result, the
// sentinel, the log and the telemetry are those of the run that goes on.
func TestASecondRunTouchesNothing(t *testing.T) {
	for name, boot := range map[string]bool{"an operator's": false, "the unit's": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := machineOf(`{}`)
				end := underway(t, options(h))
				before := h.Tree("/")
				var said []string
				second := options(h)
				second.Boot, second.Say = boot, func(s string) { said = append(said, s) }
				second.Decode = func([]byte) (contract.Contract, error) { return nil, errors.New("typo") }
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if code := Provision(ctx, second); code != exitcode.Locked {
					t.Errorf("the second run ends with %d", code)
				}
				if text := strings.Join(said, "\n"); !strings.Contains(text, "ERR_LOCKED") || !strings.Contains(text, "berth provision (pid ") {
					t.Errorf("it says %s", text)
				}
				if diff := cmp.Diff(before, h.Tree("/")); diff != "" {
					t.Errorf("it changed:\n%s", diff)
				}
				if code := end(); code != 0 {
					t.Errorf("the first run ends with %d", code)
				}
				out := &bytes.Buffer{}
				if code, err := Wait(t.Context(), waitOptions(h, out)); code != 0 || err != nil {
					t.Errorf("provision-wait: %d, %v: %s", code, err, out)
				}
				if log, err := h.ReadFile(report.LogPath); err != nil || !strings.Contains(string(log), "provisioning is done") {
					t.Errorf("the first run's log, %v:\n%s", err, log)
				}
			})
		})
	}
}

// TestTheNextRunWaitsForTheOneBefore, and the unit's keeps its result.
func TestTheNextRunWaitsForTheOneBefore(t *testing.T) {
	h := machineOf(`{}`)
	end := underway(t, options(h))
	second := options(h)
	second.Boot = true
	second.Apply = func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
		t.Error("it runs although a run has just ended")
		return nil, nil
	}
	done := make(chan int)
	go func() { done <- Provision(t.Context(), second) }()
	select {
	case code := <-done:
		t.Errorf("it did not wait and ended with %d", code)
	case <-time.After(50 * time.Millisecond):
	}
	if a, b := end(), <-done; a != 0 || b != 0 {
		t.Errorf("codes %d and %d", a, b)
	}
}

// noLock is a machine whose memory takes no lock.
type noLock struct{ host.Host }

func (noLock) Lock(context.Context, string, string) (func() error, error) {
	return nil, errors.New("read-only file system")
}

// TestARunWithoutALockHasAResult: the one who waits is told.
func TestARunWithoutALockHasAResult(t *testing.T) {
	h := machineOf(`{}`)
	if code := Provision(t.Context(), options(noLock{h})); code == 0 {
		t.Error("it succeeded")
	}
	if d := result(t, h, report.ResultPath); !strings.Contains(d.Error, "read-only") {
		t.Errorf("result %s: %s", d.ExitCode, d.Error)
	}
}

// TestLockedByAnotherCommand: nobody else writes a result, so the refusal is it.
func TestLockedByAnotherCommand(t *testing.T) {
	h := machineOf(`{}`)
	o := options(h)
	o.Apply = func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
		return nil, &host.LockedError{Path: "/run/berth/lock", Holder: "berth apply (pid 7)"}
	}
	if code := Provision(t.Context(), o); code != exitcode.Locked {
		t.Errorf("code %d", code)
	}
	if d := result(t, h, report.ResultPath); d.ExitCode != "249" {
		t.Errorf("result %s: %s", d.ExitCode, d.Error)
	}
}
