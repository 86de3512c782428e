package converge

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// UnitError is a unit that did not come to the state that was asked for.
type UnitError struct {
	Unit string
	Err  error
}

// Error names the unit.
func (e *UnitError) Error() string { return e.Unit + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnitError) Unwrap() error { return e.Err }

// start brings the unit up with what is on the disk now. The state is looked at
// again: a unit that meanwhile runs with the present inputs is left alone.
func (up *unitPlan) start(ctx context.Context) error {
	if err := up.startUnit(ctx); err != nil {
		return &UnitError{Unit: up.u.Name, Err: err}
	}
	return nil
}

func (up *unitPlan) startUnit(ctx context.Context) error {
	planned := up.status.InvocationID
	if err := up.reload(ctx); err != nil {
		return err
	}
	hash, err := up.present()
	if err != nil {
		return err
	}
	if up.status.ActiveState == "failed" {
		if err := up.h.ResetFailed(ctx, up.u.Name); err != nil {
			return err
		}
	}
	old, err := up.startsWithOld(planned)
	if err != nil {
		return err
	}
	job := up.h.StartUnit
	if up.running() || old {
		job = up.h.RestartUnit
	}
	err = job(ctx, up.u.Name)
	if startLimited(err) {
		// The limit is for units that end by themselves; this one has new inputs.
		if err := up.h.ResetFailed(ctx, up.u.Name); err != nil {
			return err
		}
		err = job(ctx, up.u.Name)
	}
	if err != nil {
		return err
	}
	return up.stamp(ctx, hash)
}

// startsWithOld says that a run which is not ready yet began before one of its
// inputs changed: a start would join it. In auto-restart the next run has not
// begun. planned is the run that the plan found: it has nothing that the plan
// changed.
func (up *unitPlan) startsWithOld(planned string) (bool, error) {
	if up.status.ActiveState != "activating" || strings.HasPrefix(up.status.SubState, "auto-restart") {
		return false, nil
	}
	if up.status.InvocationID == planned && up.changing("") != "" {
		return true, nil
	}
	which, err := up.changedSince(up.status.ExecMainStart)
	return which != "", err
}

func startLimited(err error) bool {
	e, ok := errors.AsType[*host.JobError](err)
	return ok && e.Status.Result == "start-limit-hit"
}

// reload makes systemd reread definitions where it holds old ones for the unit.
func (up *unitPlan) reload(ctx context.Context) error {
	up.reloading.Lock()
	defer up.reloading.Unlock()
	st, err := up.h.Unit(ctx, up.u.Name)
	if err != nil {
		return err
	}
	drops, err := dropIns(up.h, up.u.Name)
	if err != nil {
		return err
	}
	if up.stale(st, drops) {
		if err := up.reloadNow(ctx); err != nil {
			return err
		}
		if st, err = up.h.Unit(ctx, up.u.Name); err != nil {
			return err
		}
	}
	up.status = st
	return nil
}

// stale says that systemd holds an old definition. Its own flag sees neither a
// new definition of higher precedence than the loaded one, nor a drop-in in a
// directory that did not exist at its last reload.
func (up *unitPlan) stale(st host.UnitStatus, drops []string) bool {
	if st.NeedDaemonReload || st.LoadState == "masked" {
		return true
	}
	if st.LoadState != "loaded" {
		return false
	}
	overridden := strings.HasPrefix(up.fragment, adminUnits+"/") && st.FragmentPath != up.fragment
	return overridden || slices.ContainsFunc(drops, func(p string) bool { return !namesBase(st.DropInPaths, p) })
}

// namesBase compares by base name: a drop-in hides one of the same name in a
// directory of lower precedence.
func namesBase(paths []string, p string) bool {
	return slices.ContainsFunc(paths, func(q string) bool { return path.Base(q) == path.Base(p) })
}

// stamp notes with what the unit was started. Without the stamp a later run
// decides by time, so a failure to write it costs nothing but is told.
func (up *unitPlan) stamp(ctx context.Context, hash string) error {
	st, err := up.h.Unit(ctx, up.u.Name)
	if err != nil {
		return err
	}
	up.status = st
	if st.ActiveState == "failed" {
		return &host.JobError{Unit: up.u.Name, Job: "start", Result: "failed", Status: st}
	}
	if st.InvocationID == "" {
		return errors.New("systemd gave it no invocation id")
	}
	return writeStamp(up.h, up.u.Name, stamp{InvocationID: st.InvocationID, Hash: hash})
}
