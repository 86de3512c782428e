package unit

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// observed is a unit as systemd has it, beside the files that it is to run with.
type observed struct {
	v *kind.View
	u *desired.Unit
	// name is systemd's real one, where an alias was asked for.
	name   string
	status host.UnitStatus
	in     inputs
	// unsure says that what the unit was started with is not known, and can't be now.
	unsure bool
}

// observe asks systemd what there is, and derives from the plan what there will be.
func observe(ctx context.Context, v *kind.View, u *desired.Unit) (*observed, error) {
	o := &observed{v: v, u: u, name: u.Name, in: inputs{v: v, u: u}}
	var err error
	if !v.Offline && !unitname.IsTemplate(u.Name) {
		if o.status, err = runOf(v).systemd.unit(ctx, u.Name); err != nil {
			return nil, err
		}
		if o.status.ID != "" && loaded(o.status) {
			o.name = o.status.ID
		}
		if o.in.last, err = readStamp(v.Host, u.Name); err != nil {
			return nil, err
		}
		if o.in.last, err = o.in.last.ofThisBoot(ctx, v.Host); err != nil {
			return nil, err
		}
	}
	has := heldBy(v, o.status)
	if o.in.definition, err = (loadPath{v}).future(o.names(), has); err != nil {
		return nil, err
	}
	o.in.gone = slices.DeleteFunc(has.paths(), func(at string) bool { return !v.Deletes(at) })
	o.in.collect()
	return o, nil
}

// names are all that the unit has, its real one first: systemd reads the drop-ins of each.
func (o *observed) names() []string {
	out := []string{o.name}
	for _, name := range append([]string{o.u.Name}, o.status.Names...) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func running(st host.UnitStatus) bool {
	return st.ActiveState == "active" || st.ActiveState == "reloading"
}

func down(st host.UnitStatus) bool { return st.ActiveState == "inactive" || st.ActiveState == "failed" }

// done says that the unit has nothing more to do: a oneshot service that ran to
// its end, or a unit that systemd skipped.
func (o *observed) done() bool {
	return o.status.ActiveState == "inactive" && (o.in.last.State == finished && o.status.ServiceType == "oneshot" || o.in.last.State == skipped)
}

// stamped says that the stamp speaks of what runs, or of what has run.
func (o *observed) stamped() bool {
	return o.done() || o.in.last.InvocationID != "" && o.in.last.InvocationID == o.status.InvocationID
}

// hasReread says that the stamp knows what the unit has read of what it rereads.
func (o *observed) hasReread() bool {
	return o.stamped() || o.in.last.Reread != "" && o.in.last.Reread == o.status.InvocationID
}

// holdsOld says that systemd holds an old definition.
func (o *observed) holdsOld() bool { return o.in.definition.isOlder(o.v, o.status) }

// began is when the unit's files were read: a daemon reads them when its process
// starts, and may be ready much later.
func (o *observed) began() time.Time {
	if o.status.ExecMainStart.IsZero() {
		return o.status.ActiveEnter
	}
	return o.status.ExecMainStart
}

// wanted is what a unit will be started with. unknown names an input that can't be known
// before the download.
func (o *observed) wanted() (s stamp, unknown string, err error) {
	s, err = o.in.stampOf(o.in.definition.paths(), o.in.triggers, o.in.reloads, func(at string) (rev string, ok bool, err error) {
		if o.v.Withheld(at) {
			return o.startedWith(at)
		}
		rev, ok, err = o.in.future(at)
		if !ok && unknown == "" {
			unknown = at
		}
		return rev, ok, err
	})
	return s, unknown, err
}

// startedWith is what a unit was started with of a path that is left as somebody else made
// it; ok is false where that is not known: then no stamp is made.
func (o *observed) startedWith(at string) (rev string, ok bool, err error) {
	rev = o.in.last.revision(at)
	if o.stamped() {
		return rev, rev != "", nil
	}
	info, err := o.v.Lstat(at)
	if err != nil {
		return "", false, err
	}
	if info != nil && !info.ChangeTime.After(o.began()) {
		return o.in.revision(at)
	}
	o.unsure = o.unsure || rev == ""
	return rev, rev != "", nil
}

// redefined says how the definition differs from the one that the unit was last started with, and
// has systemd read it then: it compares times of files, and one that was copied with its time, or
// written after the clock was set back, does not look newer.
func (o *observed) redefined(want stamp) (why string, err error) {
	if o.stamped() || !running(o.status) {
		why = o.in.redefined(want.Definition)
	} else {
		why, err = o.lastAfter(slices.Concat(o.in.definition.paths(), o.vanishedFrom()), o.began())
		why = because(why, "changed after the start")
	}
	if why != "" {
		runOf(o.v).systemd.outdated()
	}
	return why, err
}

// owedByTime is the rule without a stamp: a file that changes in this plan, or
// changed after the start, means that a restart is owed.
func (o *observed) owedByTime() (string, error) {
	if which := o.in.changing(); which != "" {
		return which, nil
	}
	which, err := o.changedSince(o.began())
	return because(which, "changed after the start"), err
}

// rereads names a file that the unit has to read again while it runs; "" for none: one that this
// plan changes, also back to what the stamp says, since somebody may have had the unit read it as
// it is now. If the unit was started by another, or by a run that was cut off, it read all then.
func (o *observed) rereads(want stamp) (string, error) {
	if !running(o.status) {
		return "", nil
	}
	for _, at := range o.in.reloads {
		if o.v.Changes(at) && !o.in.immaterial(at) {
			return at, nil
		}
	}
	if o.hasReread() {
		return o.in.differing(o.in.reloads, o.in.last.Reloads, want.Reloads), nil
	}
	return o.lastAfter(o.in.reloads, o.began())
}

// changedSince names the input that changed last, if that was after a time.
func (o *observed) changedSince(start time.Time) (string, error) {
	return o.lastAfter(slices.Concat(o.in.started(), o.vanishedFrom()), start)
}

// lastAfter names the path that changed last, if that was after a time.
func (o *observed) lastAfter(paths []string, start time.Time) (which string, err error) {
	for _, at := range paths {
		if o.v.Withheld(at) {
			continue
		}
		info, err := o.v.Lstat(at)
		if err != nil {
			return "", err
		}
		if info != nil && info.ChangeTime.After(start) {
			which, start = at, info.ChangeTime
		}
	}
	return which, nil
}

// vanishedFrom are the directories in which a run that was cut off, or somebody
// else, deleted parts of the definition: they changed when that happened.
func (o *observed) vanishedFrom() []string {
	var out []string
	for _, name := range o.v.Vanished() {
		if part, ok := partOf(name); !ok || part.role == wantedLink || !slices.ContainsFunc(o.names(), part.concerns) {
			continue
		}
		for name = path.Dir(name); name != "/"; name = path.Dir(name) {
			if info, err := o.v.Lstat(name); err == nil && info != nil {
				out = append(out, name)
				break
			}
		}
	}
	return out
}
