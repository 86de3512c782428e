package machine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/berth-dev/berth/internal/host"
)

// statusAfter bounds the look at a unit whose job went wrong, in the time that is
// left to nobody.
const statusAfter = 2 * time.Second

// submit is a method of go-systemd that enqueues a job.
type submit func(c *connection, ctx context.Context, name, mode string, done chan<- string) (int, error)

var jobs = map[string]submit{
	"start": func(c *connection, ctx context.Context, name, mode string, done chan<- string) (int, error) {
		return c.StartUnitContext(ctx, name, mode, done)
	},
	"stop": func(c *connection, ctx context.Context, name, mode string, done chan<- string) (int, error) {
		return c.StopUnitContext(ctx, name, mode, done)
	},
	"restart": func(c *connection, ctx context.Context, name, mode string, done chan<- string) (int, error) {
		return c.RestartUnitContext(ctx, name, mode, done)
	},
	"reload": func(c *connection, ctx context.Context, name, mode string, done chan<- string) (int, error) {
		return c.ReloadUnitContext(ctx, name, mode, done)
	},
}

// DaemonReload implements host.Systemd.
func (m *manager) DaemonReload(ctx context.Context) error {
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	_, err := call(ctx, m, func(c *connection) (struct{}, error) { return struct{}{}, c.ReloadContext(ctx) })
	if err != nil {
		return fmt.Errorf("daemon-reload: %w", err)
	}
	return nil
}

// ExpectJobs implements host.Systemd.
func (m *manager) ExpectJobs(ctx context.Context) { go keepMovesReady(ctx.Done()) }

// StartUnit implements host.Systemd.
func (m *manager) StartUnit(ctx context.Context, name string, ahead ...string) error {
	return m.job(ctx, "start", name, ahead...)
}

// Enqueue implements host.Systemd.
func (m *manager) Enqueue(ctx context.Context, job, name string) error {
	if err := host.CheckUnit(name); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	_, err := call(ctx, m, func(c *connection) (int, error) { return jobs[job](c, ctx, name, "replace", nil) })
	return refused(name, err)
}

// StopUnit implements host.Systemd.
func (m *manager) StopUnit(ctx context.Context, name string) error {
	if path.Ext(name) == ".swap" {
		if err := m.swapOff(ctx, name); err != nil {
			return &host.UnitError{Unit: name, Err: err}
		}
	}
	return unlessUnknown(m.job(ctx, "stop", name))
}

// RestartUnit implements host.Systemd.
func (m *manager) RestartUnit(ctx context.Context, name string) error {
	return m.job(ctx, "restart", name)
}

// ReloadUnit implements host.Systemd.
func (m *manager) ReloadUnit(ctx context.Context, name string) error {
	return m.job(ctx, "reload", name)
}

// ResetFailed implements host.Systemd.
func (m *manager) ResetFailed(ctx context.Context, name string) error {
	if err := host.CheckUnit(name); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	_, err := call(ctx, m, func(c *connection) (struct{}, error) {
		return struct{}{}, c.ResetFailedUnitContext(ctx, name)
	})
	return unlessUnknown(refused(name, err))
}

// unlessUnknown leaves out that systemd does not know a unit: it forgets those
// that do nothing, so that the answer depends on chance.
func unlessUnknown(err error) error {
	if errors.Is(err, host.ErrNoSuchUnit) {
		return nil
	}
	return err
}

// job enqueues a job, has files read ahead for it and waits for its result.
func (m *manager) job(ctx context.Context, verb, name string, ahead ...string) error {
	if err := host.CheckUnit(name); err != nil {
		return err
	}
	m.news.attend(name)
	if f := host.Begun(ctx); f != nil && (verb == "start" || verb == "restart") {
		defer m.news.tellBegun(name, f)()
	}
	result, err := m.result(ctx, verb, name, ahead)
	if err != nil {
		return refused(name, err)
	}
	if result == "done" {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusAfter)
	defer cancel()
	st, _ := m.Unit(after, name)
	return &host.JobError{Unit: name, Job: verb, Result: result, Status: st}
}

func (m *manager) result(ctx context.Context, verb, name string, ahead []string) (string, error) {
	ctx, cancel := bounded(ctx, jobBound)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go keepMovesReady(over)
	done := make(chan string, 1)
	var used *connection
	_, err := call(ctx, m, func(c *connection) (int, error) {
		used = c
		return jobs[verb](c, ctx, name, "replace", done)
	})
	if err != nil {
		return "", err
	}
	go readAhead(m.files, ahead)
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%s %s: %w", verb, name, endOf(ctx))
	case <-used.raw.Context().Done():
		return m.afterLoss(ctx, verb, name)
	}
}

// afterLoss finds out how a job ended whose signal went to a connection that is
// no more. systemd keeps its jobs when it executes itself anew, but not who
// waits for them: here the unit must be asked until it has no job.
func (m *manager) afterLoss(ctx context.Context, verb, name string) (string, error) {
	for pause := reconnectPause; ; pause = min(2*pause, lockLast) {
		p, err := call(ctx, m, func(c *connection) (props, error) { return c.unit(ctx, name) })
		if err != nil {
			return "", err
		}
		if !hasJob(p) {
			return jobResult(verb, status(name, p)), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s %s: %w", verb, name, endOf(ctx))
		case <-time.After(pause):
		}
	}
}

// hasJob reads the property Job: a number, 0 for none, and a path.
func hasJob(p props) bool {
	job := get[[]any](p, "Job")
	if len(job) == 0 {
		return false
	}
	id, _ := job[0].(uint32)
	return id != 0
}

// jobResult is the result of a job as the unit's state tells it.
func jobResult(verb string, st host.UnitStatus) string {
	switch {
	case verb == "stop" && (st.ActiveState == "inactive" || st.ActiveState == "failed"):
		return "done"
	case verb != "stop" && st.ActiveState == "active":
		return "done"
	case verb != "stop" && st.ActiveState == "inactive" && st.Result == "success":
		return "done" // oneshot, or a condition that does not hold
	}
	return "failed"
}

// refusals are systemd's errors for a job that it does not accept.
var refusals = map[string]error{
	"org.freedesktop.systemd1.NoSuchUnit":           host.ErrNoSuchUnit,
	"org.freedesktop.systemd1.UnitMasked":           host.ErrUnitMasked,
	"org.freedesktop.systemd1.BadUnitSetting":       host.ErrBadUnit,
	"org.freedesktop.systemd1.LoadFailed":           host.ErrBadUnit,
	"org.freedesktop.systemd1.JobTypeNotApplicable": host.ErrNotApplicable,
	"org.freedesktop.systemd1.OnlyByDependency":     host.ErrOnlyByDependency,
}

// refused gives an error of systemd the unit it is about.
func refused(name string, err error) error {
	var answer dbus.Error
	switch {
	case err == nil, errors.Is(err, host.ErrNoSystemd), !errors.As(err, &answer):
		return err
	}
	known, ok := refusals[answer.Name]
	if !ok {
		return &host.UnitError{Unit: name, Err: err}
	}
	return &host.UnitError{Unit: name, Err: fmt.Errorf("%w: %w", known, err)}
}
