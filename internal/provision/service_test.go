package provision

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

func TestResultIfMissing(t *testing.T) {
	for name, c := range map[string]struct {
		ending Ending
		said   string
		code   string // of the result; empty: none
	}{
		"stopped":                     {Ending{"success", "exited", "0"}, "wrote the result", "247"},
		"stopped and killed for that": {Ending{"timeout", "killed", "KILL"}, "wrote the result", "247"},
		"killed":                      {Ending{"oom-kill", "killed", "KILL"}, "starts again", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{}`)
			said, err := ResultIfMissing(t.Context(), h, report.ConfigPath, "test", c.ending)
			if err != nil || !strings.Contains(said, c.said) {
				t.Errorf("said %q, %v", said, err)
			}
			if c.code == "" {
				if _, err := h.Lstat(report.SentinelPath); err == nil {
					t.Error("a sentinel exists")
				}
				return
			}
			if d := result(t, h, report.ResultPath); d.ExitCode != c.code {
				t.Errorf("exit code %s", d.ExitCode)
			}
			said, err = ResultIfMissing(t.Context(), h, report.ConfigPath, "test", Ending{"signal", "killed", "KILL"})
			if err != nil || said != "the result is there" {
				t.Error(said, err)
			}
		})
	}
}

// TestResultOfAKilledRun: what it did last and how it ended stand in the result and
// in the timeline, and nobody takes what it left for a run that goes on.
func TestResultOfAKilledRun(t *testing.T) {
	h := machineOf(`{}`)
	if code := Provision(t.Context(), options(h)); code != 0 {
		t.Fatalf("code %d", code)
	}
	if err := h.Remove(report.SentinelPath); err != nil {
		t.Fatal(err)
	}
	h.Put(progressPath, `{"command":"berth provision","pid":7,"start":"2026-11-21T01:02:03Z","milestone":"applied","doing":"wait for ready"}`, 0o600)
	if _, err := ResultIfMissing(t.Context(), h, report.ConfigPath, "test", Ending{"timeout", "killed", "KILL"}); err != nil {
		t.Fatal(err)
	}
	if d := result(t, h, report.ResultPath); d.Berth.Doing != "wait for ready" || d.Berth.Milestone != "applied" || d.ExitCode != "247" {
		t.Errorf("result %+v", d)
	}
	tl, err := report.LoadTimeline(h, report.TimelinePath)
	if err != nil || tl.ExitCode != 247 || tl.Start.Hour() != 1 || len(tl.Spans) != 0 {
		t.Errorf("timeline %+v, %v", tl, err)
	}
	if p, ok := readProgress(h, progressPath); ok {
		t.Errorf("left is %s", p)
	}
}

// TestNoResultForARunThatGoesOn: the unit was stopped, an operator's run was not.
func TestNoResultForARunThatGoesOn(t *testing.T) {
	h := machineOf(`{}`)
	end := underway(t, options(h))
	said, err := ResultIfMissing(t.Context(), h, report.ConfigPath, "test", Ending{"success", "exited", "0"})
	if err != nil || !strings.Contains(said, "another run goes on") || !strings.Contains(said, "(pid ") {
		t.Errorf("said %q, %v", said, err)
	}
	if _, err := h.Lstat(report.SentinelPath); err == nil {
		t.Error("a sentinel exists")
	}
	if code := end(); code != 0 {
		t.Errorf("the run ends with %d", code)
	}
}

// TestResultDespiteALook: somebody who looks whether a run goes on has the lock for
// a moment.
func TestResultDespiteALook(t *testing.T) {
	synctest.Test(t, resultDespiteALook)
}

func resultDespiteALook(t *testing.T) {
	h := machineOf(`{}`)
	unlock, err := lock(t.Context(), h, "a look")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lookBudget/10, func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	})
	said, err := ResultIfMissing(t.Context(), h, report.ConfigPath, "test", Ending{"success", "exited", "0"})
	if err != nil || said != "wrote the result" {
		t.Errorf("said %q, %v", said, err)
	}
}

// mute is a machine whose systemd does not answer.
type mute struct{ host.Host }

func (mute) Unit(ctx context.Context, _ string) (host.UnitStatus, error) {
	<-ctx.Done()
	return host.UnitStatus{}, ctx.Err()
}

// TestResultOfAMuteSystemd: what is asked only for the result's sake, or not at
// all, keeps no result back, and nothing is waited for without an end.
func TestResultOfAMuteSystemd(t *testing.T) {
	for result, written := range map[string]bool{"timeout": true, "oom-kill": false} {
		synctest.Test(t, func(t *testing.T) {
			h, begun := machineOf(`{}`), time.Now()
			_, err := ResultIfMissing(t.Context(), mute{h}, report.ConfigPath, "test", Ending{result, "killed", "KILL"})
			_, missing := h.Lstat(report.ResultPath)
			if took := time.Since(begun); took > reportBudget || (err == nil) != written || (missing == nil) != written {
				t.Errorf("%s: %v, %v after %s", result, err, missing, took)
			}
		})
	}
}
