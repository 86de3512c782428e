package unit

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// baseline notes, before anything changes, the triggers that somebody names for
// the first time: a change of them in this run then shows, also after a kill.
func (p *planner) baseline(context.Context) error {
	if !p.stamped() {
		return nil
	}
	s, added := p.last, false
	for _, part := range []struct {
		into *map[string]string
		of   []string
	}{{&s.Triggers, p.triggers}, {&s.Reloads, p.reloads}} {
		now, err := p.revisions(part.of)
		if err != nil {
			return err
		}
		*part.into, added = merged(*part.into, now, added)
	}
	if !added {
		return nil
	}
	s.Unread = leaving(p.unread, s.Triggers, s.Reloads)
	p.last = s
	return writeStamp(p.Host, p.u.Name, s)
}

// start brings the unit up with what is on the disk now. The state is looked at
// again: a unit that meanwhile runs with the present inputs is left alone.
func (p *planner) start(ctx context.Context) error {
	err := p.startUnit(ctx)
	switch _, failed := errors.AsType[*host.JobError](err); {
	case err == nil:
		return nil
	case failed && p.u.Optional:
		p.sys.remark(p.u.Name + " did not start, and the machine does without: " + err.Error())
		return nil
	}
	return &kind.UnitError{Unit: p.u.Name, Err: err}
}

func (p *planner) startUnit(ctx context.Context) error {
	planned := p.status.InvocationID
	if err := p.refresh(ctx); err != nil {
		return err
	}
	now, err := p.present()
	if err != nil {
		return err
	}
	if p.failedBefore() {
		// The start limit is for units that end by themselves; this one has new inputs.
		if err := p.Host.ResetFailed(ctx, p.u.Name); err != nil {
			return err
		}
	}
	fresh, err := p.startedSince(planned)
	if err != nil || fresh {
		return errors.Join(err, p.note(ctx, now))
	}
	job, joins, err := p.job(ctx, planned)
	if err != nil {
		return err
	}
	err = job(ctx, p.u.Name)
	if _, failed := errors.AsType[*host.JobError](err); failed && joins {
		err = p.Host.RestartUnit(ctx, p.u.Name) // that run may have read its files right before they changed
	}
	if errors.Is(err, host.ErrOnlyByDependency) && pausing(p.status) {
		err = p.Host.StartUnit(ctx, p.u.Name) // after the pause: a restart would be a stop, too
	}
	if err == nil && p.assumed {
		return p.verify(ctx, now)
	}
	if startLimited(err) {
		if err := p.Host.ResetFailed(ctx, p.u.Name); err != nil {
			return err
		}
		err = job(ctx, p.u.Name)
	}
	if err != nil && !isSkipped(err) {
		return err
	}
	return p.note(ctx, now)
}

// refresh asks systemd anew, when it has read what changed.
func (p *planner) refresh(ctx context.Context) error {
	if err := p.sys.current(ctx); err != nil {
		return err
	}
	if p.new() {
		if loaded, err := p.Host.Loaded(ctx, p.u.Name); err != nil || !loaded {
			p.status, p.assumed = p.planned(), true
			return err
		}
	}
	st, err := p.Host.Unit(ctx, p.u.Name)
	if err != nil {
		return err
	}
	if p.holdsOld(st) {
		if err := p.sys.reload(ctx); err != nil {
			return err
		}
		if st, err = p.Host.Unit(ctx, p.u.Name); err != nil {
			return err
		}
	}
	p.status = st
	return nil
}

// new says that systemd had not loaded this service when the plan was made, which has a
// definition of its own name and is no alias.
func (p *planner) new() bool {
	_, known := p.sys.known[p.name]
	return !known && path.Ext(p.name) == ".service" && path.Base(p.fragment) == p.u.Name && p.name == p.u.Name
}

// planned is a service that systemd has not loaded: it reads the definition when it starts
// it, and each question before would make it do so once more.
func (p *planner) planned() host.UnitStatus {
	return host.UnitStatus{
		Name: p.name, ID: p.name, LoadState: "loaded", ActiveState: "inactive", SubState: "dead",
		FragmentPath: p.fragment, DropInPaths: p.drops,
	}
}

// verify looks whether systemd read what is on the disk when it started a service, and has
// it do so where it found something else.
func (p *planner) verify(ctx context.Context, now stamp) error {
	st, err := p.Host.State(ctx, p.u.Name)
	if err != nil {
		return err
	}
	p.status, p.assumed = st, false
	if p.Real(st.FragmentPath) != p.fragment || p.holdsOld(st) {
		return p.startAgain(ctx)
	}
	if len(st.DropInPaths) != len(p.drops) { // some that the plan knows nothing of
		if now, err = p.present(); err != nil {
			return err
		}
	}
	return p.noteState(ctx, st, now)
}

// startAgain has systemd read the definitions and restarts the unit with them.
func (p *planner) startAgain(ctx context.Context) error {
	err := p.sys.reload(ctx)
	if err == nil {
		p.status, err = p.Host.Unit(ctx, p.u.Name)
	}
	if err != nil {
		return err
	}
	now, err := p.present()
	if err == nil {
		err = p.Host.RestartUnit(ctx, p.u.Name)
	}
	if err != nil && !isSkipped(err) {
		return err
	}
	return p.note(ctx, now)
}

// holdsOld says that systemd holds an old definition. Its own flag sees neither a
// new definition of higher precedence than the loaded one, nor a drop-in in a
// directory that did not exist at its last reload.
func (p *planner) holdsOld(st host.UnitStatus) bool {
	if st.NeedDaemonReload || st.LoadState == "masked" {
		return true
	}
	if st.LoadState != "loaded" {
		return false
	}
	stronger := strings.HasPrefix(p.fragment, adminDir+"/") && p.Real(st.FragmentPath) != p.fragment
	return stronger || slices.ContainsFunc(p.drops, func(at string) bool { return !namesBase(st.DropInPaths, at) })
}

// namesBase compares by base name: a drop-in hides one of the same name in a
// directory of lower precedence.
func namesBase(paths []string, p string) bool {
	return slices.ContainsFunc(paths, func(q string) bool { return path.Base(q) == path.Base(p) })
}

// present is what the unit is started with: what systemd says that it consists
// of, and the triggers of all who named any.
func (p *planner) present() (stamp, error) {
	definition := []string{}
	for _, at := range append(slices.Clone(p.status.DropInPaths), p.status.FragmentPath) {
		if at != "" {
			definition = append(definition, p.Real(at))
		}
	}
	s := stamp{}
	for _, part := range []struct {
		into *map[string]string
		of   []string
	}{{&s.Definition, definition}, {&s.Triggers, append(sorted(p.last.Triggers), p.triggers...)}, {&s.Reloads, append(sorted(p.last.Reloads), p.reloads...)}} {
		var err error
		if *part.into, err = p.revisions(part.of); err != nil {
			return s, err
		}
	}
	s.Unread = leaving(p.useless, s.Triggers, s.Reloads)
	return s, nil
}

// startedSince says that systemd has started the unit by itself since the plan was
// made, with everything as it is now: as a consequence of another unit's restart,
// or because another that was started needs it.
func (p *planner) startedSince(planned string) (bool, error) {
	if !running(p.status) || p.status.InvocationID == planned || p.status.InvocationID == "" {
		return false, nil
	}
	which, err := p.changedSince(began(p.status.ExecMainStart, p.status.ActiveEnter))
	return which == "", err
}

// failedBefore says that the unit's last run failed. Where systemd's start limit is reached,
// too, a start fails with that run's result and does not tell of the limit.
func (p *planner) failedBefore() bool {
	return !running(p.status) && p.status.Result != "" && p.status.Result != "success"
}

// pausing says that the unit waits, for as long as RestartSec= says, until systemd starts it
// again.
func pausing(st host.UnitStatus) bool { return strings.HasPrefix(st.SubState, "auto-restart") }

// job is what brings the unit up: a restart where it runs, or where a start would
// join a run that began with old files or wait for systemd's own restart. joins: a start
// joins one that goes on. By the times of files and processes that began with the present
// ones, but the kernel gives files the time of its last tick.
func (p *planner) job(ctx context.Context, planned string) (do func(context.Context, string) error, joins bool, err error) {
	old, err := p.startsWithOld(planned)
	if err != nil {
		return nil, false, err
	}
	if path.Ext(p.name) == ".socket" {
		if err := p.stopTriggered(ctx); err != nil {
			return nil, false, err
		}
	}
	if !running(p.status) && !old && !pausing(p.status) {
		return p.startFresh, p.status.ActiveState == "activating", nil
	}
	return p.Host.RestartUnit, false, nil
}

// startFresh starts the unit, with what it reads read ahead.
func (p *planner) startFresh(ctx context.Context, name string) error {
	return p.Host.StartUnit(ctx, name, p.u.ReadAhead...)
}

// startsWithOld says that a run which is not ready yet began before one of its
// inputs changed: a start would join it. In auto-restart the next run has not
// begun. planned is the run that the plan found: it has nothing that the plan
// changed.
func (p *planner) startsWithOld(planned string) (bool, error) {
	if p.status.ActiveState != "activating" || pausing(p.status) {
		return false, nil
	}
	if p.status.InvocationID == planned && p.changing() != "" {
		return true, nil
	}
	// As long as its ExecStartPre= run, systemd tells of the process before this run's;
	// what it tested at the beginning is of this run.
	since := p.status.ExecMainStart
	if since.Before(p.status.ConditionTime) {
		since = p.status.ConditionTime
	}
	which, err := p.changedSince(since)
	return which != "", err
}

// stopTriggered stops the services of a socket: systemd refuses to start a socket
// whose service runs. They start again when the run ends.
func (p *planner) stopTriggered(ctx context.Context) error {
	for _, name := range p.status.Triggers {
		st, err := p.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if down(st) {
			continue
		}
		p.sys.comesBack(name)
		if err := stopUnit(ctx, p.Host, name); err != nil {
			return err
		}
	}
	return nil
}

func startLimited(err error) bool {
	e, ok := errors.AsType[*host.JobError](err)
	return ok && e.Status.Result == "start-limit-hit"
}

// isSkipped says that an Assert…= of the definition does not hold. systemd calls a
// condition that does not hold a start that is done.
func isSkipped(err error) bool {
	e, ok := errors.AsType[*host.JobError](err)
	return ok && e.Result == "assert"
}

// note writes with what the unit was started. Without the stamp a later run
// decides by time.
func (p *planner) note(ctx context.Context, s stamp) error {
	st, err := p.Host.State(ctx, p.u.Name)
	if err != nil {
		return err
	}
	return p.noteState(ctx, st, s)
}

func (p *planner) noteState(ctx context.Context, st host.UnitStatus, s stamp) error {
	p.status, s.InvocationID = st, st.InvocationID
	p.sys.started(p.u.Name, st)
	switch {
	case st.ActiveState == "failed", pausing(st):
		return &host.JobError{Unit: p.u.Name, Job: "start", Result: "failed", Status: st}
	case st.ActiveState == "inactive" && (!st.ConditionResult || !st.AssertResult):
		s.State = skipped
		p.sys.remark(p.u.Name + " is skipped: a condition of its definition does not hold")
	case st.ActiveState == "inactive" && st.ServiceType == "oneshot":
		s.State = finished
	case st.ActiveState == "inactive":
		return &host.JobError{Unit: p.u.Name, Job: "start", Result: "ended at once", Status: st}
	case st.InvocationID == "":
		return errors.New("systemd gave it no invocation id")
	}
	if s.State != "" {
		boot, err := ledger.PresentBoot(ctx, p.Host)
		if err != nil {
			return err
		}
		s.Userspace = boot.Userspace
	}
	if !p.u.Optional {
		p.sys.watch(st)
	}
	return writeStamp(p.Host, p.u.Name, s)
}

// reload makes a running unit read its files again; one that can't is restarted.
func (p *planner) reload(ctx context.Context) error {
	if err := p.refresh(ctx); err != nil {
		return &kind.UnitError{Unit: p.u.Name, Err: err}
	}
	if !p.status.CanReload {
		return p.start(ctx)
	}
	now, err := p.present()
	if err == nil {
		err = p.Host.ReloadUnit(ctx, p.u.Name)
	}
	if err != nil {
		return &kind.UnitError{Unit: p.u.Name, Err: err}
	}
	if !p.stamped() {
		return p.noteReload(now)
	}
	now.Definition, now.InvocationID = p.last.Definition, p.last.InvocationID
	for at, rev := range p.last.Triggers {
		now.Triggers[at] = rev // they need a restart
	}
	now.Unread = leaving(p.unread, now.Triggers, now.Reloads)
	return writeStamp(p.Host, p.u.Name, now)
}

// noteReload stamps a unit that another started, so that the reload is not owed
// again. One that runs with old inputs, too, is left to those who want it restarted.
func (p *planner) noteReload(now stamp) error {
	reason, err := p.owedByTime()
	if err != nil || reason != "" {
		return err
	}
	now.InvocationID = p.status.InvocationID
	return writeStamp(p.Host, p.u.Name, now)
}
