package provision

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// restarts is how often systemd may start the unit again by itself before the
// run counts as killed.
const restarts = 4

// Ending is what systemd tells a service's ExecStopPost of its end: the
// variables SERVICE_RESULT, EXIT_CODE and EXIT_STATUS.
type Ending struct{ ServiceResult, ExitCode, ExitStatus string }

// ResultIfMissing runs when the unit has stopped. A run that was killed left no
// result; unless systemd will start it again, or another run goes on, this writes
// one in its place. It says what it did.
func ResultIfMissing(ctx context.Context, h host.Host, config, version string, e Ending) (said string, err error) {
	unlock, err := lockSoon(ctx, h, "berth node result")
	if _, locked := errors.AsType[*host.LockedError](err); locked {
		return fmt.Sprintf("no result yet: another run goes on (%v)", err), nil
	}
	if err == nil {
		defer func() { err = errors.Join(err, unlock()) }()
	}
	ctx, cancel := context.WithTimeout(ctx, reportBudget)
	defer cancel()
	instance := InstanceID(h)
	imageBuild := terms(h, config).ImageBuild
	a, err := lastAttempt(h, instance, imageBuild)
	if err != nil {
		return "", err
	}
	if a.ended {
		return "the result is there", nil
	}
	again, err := e.startsAgain(ctx, h)
	if err != nil {
		return "", err
	}
	if again {
		return fmt.Sprintf("no result yet: the run ended by %s %s and starts again", e.ExitCode, e.ExitStatus), nil
	}
	d := killed(ctx, h, e, instance, version)
	left, ok := readProgress(h, progressPath)
	if ok && left.Doing != "" {
		d.Berth.Doing, d.Berth.Milestone = left.Doing, string(left.Milestone)
	}
	err = report.WriteResult(ctx, h, d, imageBuild)
	if ok {
		_ = h.Remove(progressPath)
		_ = timelineOf(left, d, h.Now()).Save(h, report.TimelinePath) // not worth a failure
	}
	return "wrote the result", err
}

// timelineOf is the timeline of a run that was killed: that of an earlier one would
// tell of another end.
func timelineOf(p Progress, d report.Result, end time.Time) *report.Timeline {
	return &report.Timeline{
		Command: p.Command, Version: d.Berth.Version, InstanceID: d.Berth.InstanceID, Start: p.Start, End: end,
		ExitCode: exitCode(d), Milestone: string(p.Milestone),
	}
}

// lockSoon does not wait for a run, but for a mere look at the lock.
func lockSoon(ctx context.Context, h host.Host, command string) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBudget)
	defer cancel()
	return lock(ctx, h, command)
}

// lookBudget is much longer than Underway holds the lock.
const lookBudget = 200 * time.Millisecond

// over is a context for a lock that is not waited for.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// stopped says that the unit was told to stop: it did, or took so long that
// systemd killed it. Neither is started again.
func (e Ending) stopped() bool { return e.ServiceResult == "success" || e.ServiceResult == "timeout" }

// startsAgain says whether systemd will start the unit again by itself.
func (e Ending) startsAgain(ctx context.Context, h host.Systemd) (bool, error) {
	if e.stopped() {
		return false, nil
	}
	s, err := h.Unit(ctx, report.ServiceUnit)
	if err != nil {
		return false, fmt.Errorf("look at the unit: %w", err)
	}
	return s.NRestarts < restarts, nil
}

func killed(ctx context.Context, h host.Host, e Ending, instance, version string) report.Result {
	c := exitcode.ByNumber(exitcode.Killed)
	if e.stopped() { // before it could say so
		c = exitcode.ByNumber(exitcode.Interrupted)
	}
	d := report.Result{
		CSEStatus: nodeconfigutils.CSEStatus{
			ExitCode: strconv.Itoa(c.Number),
			Error:    fmt.Sprintf("provisioning ended without a result: %s (%s %s)", e.ServiceResult, e.ExitCode, e.ExitStatus),
		},
		Berth: &report.Details{Version: version, InstanceID: instance, Code: c.Name, Doing: "provision", Hint: c.Hint},
	}
	report.ReadBoot(ctx, h, kubelet.Unit).Into(&d)
	return d
}
