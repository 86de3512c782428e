package unit

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// job is what is done to one unit when the plan is carried out.
type job struct {
	v    *kind.View
	run  *run
	u    *desired.Unit
	unit *observed
	// assumed: the unit's status is what the plan expects of a service that systemd has not loaded.
	assumed bool
}

// baseline notes, before anything changes, the triggers that somebody names for the first time,
// and what the unit may have read meanwhile of what it rereads: that this run changes them then
// shows also after a kill.
func (j *job) baseline(context.Context) error {
	if !j.unit.hasReread() {
		return nil
	}
	in := &j.unit.in
	s, added, err := in.extended()
	if err != nil {
		return err
	}
	for _, at := range slices.DeleteFunc(slices.Clone(in.reloads), func(at string) bool { return !in.v.Changes(at) }) {
		now, _, err := in.revision(at)
		if err != nil {
			return err
		}
		if s.Reloads[at] != now {
			s.Reloads, added = maps.Clone(s.Reloads), true
			s.Reloads[at] = now
		}
	}
	if !added {
		return nil
	}
	in.last = s
	return writeStamp(j.v.Host, j.u.Name, s)
}

// start brings the unit up with what is on the disk now. The state is looked at
// again: a unit that meanwhile runs with the present inputs is left alone.
func (j *job) start(ctx context.Context) error {
	err := j.startUnit(ctx)
	switch _, failed := errors.AsType[*host.JobError](err); {
	case err == nil:
		return nil
	case failed && j.u.Optional:
		j.run.remark(j.u.Name + " did not start, and the machine does without: " + err.Error())
		return nil
	}
	return &kind.UnitError{Unit: j.u.Name, Err: err}
}

func (j *job) startUnit(ctx context.Context) error {
	planned := j.unit.status.InvocationID
	if err := j.refresh(ctx); err != nil {
		return err
	}
	now, err := j.present()
	if err != nil {
		return err
	}
	if j.failedBefore() {
		// The start limit is for units that end by themselves; this one has new inputs.
		if err := j.v.Host.ResetFailed(ctx, j.u.Name); err != nil {
			return err
		}
	}
	fresh, err := j.isFresh(planned)
	if err != nil || fresh && running(j.unit.status) {
		return j.note(ctx, now, err)
	}
	if path.Ext(j.unit.name) == ".socket" {
		if err := j.stopTriggered(ctx); err != nil {
			return err
		}
	}
	do := j.v.Host.RestartUnit
	if fresh || !j.begun() && !pausing(j.unit.status) {
		do = j.startFresh
	}
	err = do(ctx, j.u.Name)
	if _, failed := errors.AsType[*host.JobError](err); failed && fresh {
		err = j.v.Host.RestartUnit(ctx, j.u.Name) // that run may have read its files right before they changed
	}
	if errors.Is(err, host.ErrOnlyByDependency) && pausing(j.unit.status) {
		err = j.v.Host.StartUnit(ctx, j.u.Name) // after the pause: a restart would be a stop, too
	}
	if startLimited(err) {
		if err := j.v.Host.ResetFailed(ctx, j.u.Name); err != nil {
			return err
		}
		err = do(ctx, j.u.Name)
	}
	return j.note(ctx, now, err)
}

// startFresh starts the unit, with what it reads read ahead.
func (j *job) startFresh(ctx context.Context, name string) error {
	return j.v.Host.StartUnit(ctx, name, j.u.ReadAhead...)
}

// refresh asks systemd anew, when it has read what changed.
func (j *job) refresh(ctx context.Context) error {
	if err := j.run.systemd.current(ctx); err != nil {
		return err
	}
	if j.new() {
		if loaded, err := j.v.Host.Loaded(ctx, j.u.Name); err != nil || !loaded {
			// It reads the definition when it starts it, and each question before would make it do so
			// once more.
			name, d := j.unit.name, j.unit.in.definition
			j.unit.status = host.UnitStatus{Name: name, ID: name, LoadState: "loaded", ActiveState: "inactive", SubState: "dead", FragmentPath: d.fragment, DropInPaths: d.drops}
			j.assumed = true
			return err
		}
	}
	if err := j.ask(ctx); err != nil || !j.unit.holdsOld() {
		return err
	}
	return j.reread(ctx)
}

func (j *job) ask(ctx context.Context) (err error) {
	j.unit.status, err = j.v.Host.Unit(ctx, j.u.Name)
	return err
}

// reread has systemd read the definitions, and asks it anew.
func (j *job) reread(ctx context.Context) error {
	if err := j.run.systemd.reload(ctx); err != nil {
		return err
	}
	return j.ask(ctx)
}

// new says that systemd had not loaded this service when the plan was made, which has a
// definition of its own name and is no alias.
func (j *job) new() bool {
	_, known := j.run.systemd.known[j.unit.name]
	return !known && path.Ext(j.unit.name) == ".service" && path.Base(j.unit.in.definition.fragment) == j.u.Name && j.unit.name == j.u.Name
}

// present is what the unit is started with: what systemd says that it consists of, and what is
// there now.
func (j *job) present() (stamp, error) { return j.unit.in.present(heldBy(j.v, j.unit.status)) }

// startAgain has systemd read the definitions, where it read something else than what is on the
// disk, and restarts the unit with them.
func (j *job) startAgain(ctx context.Context) error {
	if err := j.reread(ctx); err != nil {
		return err
	}
	now, err := j.present()
	if err == nil {
		err = j.v.Host.RestartUnit(ctx, j.u.Name)
	}
	return j.note(ctx, now, err)
}

// begun says that a run of the unit goes on: in auto-restart the next one has not begun.
func (j *job) begun() bool {
	return running(j.unit.status) || j.unit.status.ActiveState == "activating" && !pausing(j.unit.status)
}

// isFresh says that a run of the unit goes on that systemd began by itself with everything as it is
// now: as a consequence of another unit's restart, or because another that was started needs it.
// Then nothing is left to do, or a start joins it; else a start would join a run that began with
// old files. planned is the run that the plan found: it has nothing that the plan changed. This
// goes by the times of files and processes, but the kernel gives files the time of its last tick.
func (j *job) isFresh(planned string) (bool, error) {
	st := j.unit.status
	old := st.InvocationID == planned && (running(st) || j.unit.in.changing() != "")
	if !j.begun() || old || running(st) && st.InvocationID == "" {
		return false, nil
	}
	since := j.unit.began()
	if !running(st) {
		// As long as its ExecStartPre= run, systemd tells of the process before this run's;
		// what it tested at the beginning is of this run.
		if since = st.ExecMainStart; since.Before(st.ConditionTime) {
			since = st.ConditionTime
		}
	}
	which, err := j.unit.changedSince(since)
	return which == "", err
}

// failedBefore says that the unit's last run failed. Where systemd's start limit is reached,
// too, a start fails with that run's result and does not tell of the limit.
func (j *job) failedBefore() bool {
	return !running(j.unit.status) && j.unit.status.Result != "" && j.unit.status.Result != "success"
}

// pausing says that the unit waits, for as long as RestartSec= says, until systemd starts it
// again.
func pausing(st host.UnitStatus) bool { return strings.HasPrefix(st.SubState, "auto-restart") }

// stopTriggered stops the services of a socket: systemd refuses to start a socket
// whose service runs. They start again when the run ends.
func (j *job) stopTriggered(ctx context.Context) error {
	for _, name := range j.unit.status.Triggers {
		st, err := j.v.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if down(st) {
			continue
		}
		j.run.comesBack(name)
		if err := stopUnit(ctx, j.v.Host, name); err != nil {
			return err
		}
	}
	return nil
}

func skippedUnit(name string) string {
	return name + " is skipped: a condition of its definition does not hold"
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

// note writes with what the unit was started, unless that failed. Without the stamp a later run
// decides by time.
func (j *job) note(ctx context.Context, s stamp, err error) error {
	if err != nil && !isSkipped(err) {
		return err
	}
	if j.unit.status, err = j.v.Host.State(ctx, j.u.Name); err != nil {
		return err
	}
	if j.assumed {
		j.assumed = false
		planned, has := j.unit.in.definition, heldBy(j.v, j.unit.status)
		if has.fragment != planned.fragment || j.unit.holdsOld() {
			return j.startAgain(ctx)
		}
		if len(has.drops) != len(planned.drops) { // some that the plan knows nothing of
			if s, err = j.present(); err != nil {
				return err
			}
		}
	}
	st := j.unit.status
	s.InvocationID = st.InvocationID
	j.run.systemd.started(j.u.Name, st)
	switch {
	case st.ActiveState == "failed", pausing(st):
		return &host.JobError{Unit: j.u.Name, Job: "start", Result: "failed", Status: st}
	case st.ActiveState == "inactive" && (!st.ConditionResult || !st.AssertResult):
		s.State = skipped
		j.run.remark(skippedUnit(j.u.Name))
	case st.ActiveState == "inactive" && st.ServiceType == "oneshot":
		s.State = finished
	case st.ActiveState == "inactive":
		return &host.JobError{Unit: j.u.Name, Job: "start", Result: "ended at once", Status: st}
	case st.InvocationID == "":
		return errors.New("systemd gave it no invocation id")
	}
	if s.State != "" {
		boot, err := ledger.PresentBoot(ctx, j.v.Host)
		if err != nil {
			return err
		}
		s.Userspace = boot.Userspace
	}
	if !j.u.Optional {
		j.run.watch(st)
	}
	return writeStamp(j.v.Host, j.u.Name, s)
}

// reload makes a running unit read its files again; one that can't is restarted.
func (j *job) reload(ctx context.Context) error {
	if err := j.refresh(ctx); err != nil {
		return &kind.UnitError{Unit: j.u.Name, Err: err}
	}
	if !j.unit.status.CanReload {
		return j.start(ctx)
	}
	now, err := j.present()
	if err == nil {
		err = j.v.Host.ReloadUnit(ctx, j.u.Name)
	}
	if err != nil {
		return &kind.UnitError{Unit: j.u.Name, Err: err}
	}
	return j.noteReload(now)
}

// noteReload stamps a unit that reads its files again as they are now, so that this is not owed
// again. What needs a restart stays as it is in the stamp. Of a unit that another started there is
// none: one that may run with old inputs, too, is left to those who want it restarted.
func (j *job) noteReload(now stamp) error {
	last := j.unit.in.last
	if j.unit.stamped() {
		now.Definition, now.InvocationID = last.Definition, last.InvocationID
		maps.Copy(now.Triggers, last.Triggers)
		now.leaveOut(j.unit.in.unread)
		return writeStamp(j.v.Host, j.u.Name, now)
	}
	reason, err := j.unit.owedByTime()
	if err != nil {
		return err
	}
	if reason != "" {
		last.Reread, last.Reloads = j.unit.status.InvocationID, now.Reloads
		last.leaveOut(j.unit.in.unread)
		return writeStamp(j.v.Host, j.u.Name, last)
	}
	now.InvocationID = j.unit.status.InvocationID
	return writeStamp(j.v.Host, j.u.Name, now)
}

// noteReread is noteReload of a unit that a boot reloads.
func (j *job) noteReread() error {
	now, err := j.present()
	if err == nil {
		err = j.noteReload(now)
	}
	return err
}
