package unit

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
)

// owed says why a running unit must be restarted; "" if it must not.
func (p *planner) owed() (string, error) {
	want, unknown, err := p.wanted()
	if err != nil {
		return "", err
	}
	redefined, err := p.redefined(want)
	if why := p.Demanded(p.u.ID()); why != "" || err != nil {
		return why, err
	}
	if unknown != "" {
		return because(unknown, "changes"), nil
	}
	if !p.stamped() {
		reason, err := p.owedByTime()
		if err == nil && reason == "" {
			p.adopt(want)
		}
		return reason, err
	}
	if redefined != "" {
		return redefined, nil
	}
	if at := differing(p.last.Triggers, want.Triggers); at != "" {
		return p.changed(at), nil
	}
	for _, at := range p.triggers {
		if _, known := p.last.Triggers[at]; !known && p.Changes(at) {
			return because(at, "changes"), nil
		}
	}
	p.learn(want)
	return "", nil
}

// redefined says how the definition differs from the one that the unit was last
// started with, and has systemd read it then: it compares times of files, and one that
// was copied with its time, or written after the clock was set back, does not look newer.
func (p *planner) redefined(want stamp) (string, error) {
	why := p.difference(want)
	if !p.stamped() && running(p.status) {
		at, err := p.lastAfter(slices.Concat(p.definition(), p.vanishedFrom()), began(p.status.ExecMainStart, p.status.ActiveEnter))
		if err != nil {
			return "", err
		}
		why = because(at, "changed after the start")
	}
	if why != "" {
		p.sys.outdated()
	}
	return why, nil
}

// difference compares the definition with the stamp's, also with that of an earlier
// run of the unit; "" where there is none.
func (p *planner) difference(want stamp) string {
	if len(p.last.Definition) == 0 {
		return ""
	}
	for _, at := range p.definition() {
		if p.Withheld(at) {
			continue
		}
		if old, ok := p.last.Definition[at]; !ok {
			return because(at, "is new")
		} else if old != want.Definition[at] {
			return p.changed(at)
		}
	}
	for _, at := range sorted(p.last.Definition) {
		if _, ok := want.Definition[at]; !ok && !p.Withheld(at) {
			return because(at, "goes")
		}
	}
	return ""
}

// rereadLoaded has systemd read the definition of a unit that does not run and that
// it may hold, where that is not what the unit last ran with.
func (p *planner) rereadLoaded() error {
	if !p.loaded() || len(p.last.Definition) == 0 {
		return nil
	}
	want, _, err := p.wanted()
	if err == nil {
		_, err = p.redefined(want)
	}
	return err
}

func because(at, what string) string {
	if at == "" {
		return ""
	}
	return at + " " + what
}

func (p *planner) changed(at string) string {
	if p.Changes(at) {
		return because(at, "changes")
	}
	return because(at, "is not what it was started with")
}

// stamped says that the stamp speaks of what runs, or of what has run.
func (p *planner) stamped() bool {
	if p.done() {
		return true
	}
	return p.last.InvocationID != "" && p.last.InvocationID == p.status.InvocationID
}

// adopt stamps a unit that runs with what is wanted but was started by another,
// or by a run that was cut off before it could.
func (p *planner) adopt(want stamp) {
	if p.status.InvocationID == "" || p.unsure {
		return
	}
	want.InvocationID = p.status.InvocationID
	p.t.Finalize = func() error { return writeStamp(p.Host, p.u.Name, want) }
	if p.t.Before == nil && slices.ContainsFunc(p.inputs(), p.immaterial) {
		// A run that is cut off after the change would leave a file newer than the start.
		p.t.Before = func(context.Context) error { return writeStamp(p.Host, p.u.Name, want) }
	}
	p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
}

// learn adds triggers to a stamp that somebody names for the first time: from now
// on their change restarts the unit.
func (p *planner) learn(want stamp) {
	s, added := p.last, false
	s.Triggers, added = merged(s.Triggers, want.Triggers, added)
	s.Reloads, added = merged(s.Reloads, want.Reloads, added)
	if added {
		s.Unread = leaving(p.unread, s.Triggers, s.Reloads)
		p.t.Finalize = func() error { return writeStamp(p.Host, p.u.Name, s) }
		p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
	}
}

// merged adds what is not known yet.
func merged(have, more map[string]string, added bool) (map[string]string, bool) {
	out := map[string]string{}
	for at, rev := range have {
		out[at] = rev
	}
	for at, rev := range more {
		if _, ok := out[at]; !ok {
			out[at], added = rev, true
		}
	}
	return out, added
}

// owedByTime is the rule without a stamp: a file that changes in this plan, or
// changed after the start, means that a restart is owed.
func (p *planner) owedByTime() (string, error) {
	if which := p.changing(); which != "" {
		return which, nil
	}
	which, err := p.changedSince(began(p.status.ExecMainStart, p.status.ActiveEnter))
	return because(which, "changed after the start"), err
}

// began is when a unit's files were read: a daemon reads them when its process
// starts, and may be ready much later.
func began(process, active time.Time) time.Time {
	if process.IsZero() {
		return active
	}
	return process
}

// inputs are all files that a unit runs with.
func (p *planner) inputs() []string {
	return slices.Concat(p.bundles, p.definition(), p.triggers)
}

// changing names the first input that this plan changes.
func (p *planner) changing() string {
	if len(p.gone) > 0 {
		return because(p.gone[0], "goes")
	}
	for _, at := range p.inputs() {
		if p.Changes(at) && !p.immaterial(at) {
			return because(at, "changes")
		}
	}
	return ""
}

// changedSince names the input that changed last, if that was after a time.
func (p *planner) changedSince(start time.Time) (string, error) {
	return p.lastAfter(slices.Concat(p.inputs(), p.vanishedFrom()), start)
}

// lastAfter names the path that changed last, if that was after a time.
func (p *planner) lastAfter(paths []string, start time.Time) (string, error) {
	paths = slices.DeleteFunc(slices.Clone(paths), p.Withheld)
	which, at, err := newest(p.View, paths)
	if err != nil || !at.After(start) {
		return "", err
	}
	return which, nil
}

// vanishedFrom are the directories in which a run that was cut off, or somebody
// else, deleted parts of the definition: they changed when that happened.
func (p *planner) vanishedFrom() []string {
	var out []string
	for _, name := range p.Vanished() {
		if part, ok := partOf(name); !ok || part.role == wantedLink || !slices.ContainsFunc(p.names(), part.concerns) {
			continue
		}
		for name = path.Dir(name); name != "/"; name = path.Dir(name) {
			if info, err := p.Lstat(name); err == nil && info != nil {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// wanted is what a unit will be started with. Where one input can't be known
// before the download, its path is returned.
func (p *planner) wanted() (s stamp, unknown string, err error) {
	for _, part := range []struct {
		into *map[string]string
		last map[string]string
		of   []string
	}{{&s.Definition, p.last.Definition, p.definition()}, {&s.Triggers, p.last.Triggers, p.triggers}, {&s.Reloads, p.last.Reloads, p.reloads}} {
		*part.into = map[string]string{}
		for _, at := range part.of {
			if p.Withheld(at) {
				rev, ok, err := p.startedWith(at, part.last)
				if err != nil {
					return s, at, err
				}
				if ok {
					(*part.into)[at] = rev
				}
				continue
			}
			rev, ok, err := p.future(at)
			if err != nil || !ok {
				return s, at, err
			}
			(*part.into)[at] = rev
		}
	}
	s.Unread = leaving(p.unread, s.Triggers, s.Reloads)
	return s, "", nil
}

// startedWith is what a unit was started with of a path that is left as somebody else made
// it; ok is false where that is not known: then no stamp is made.
func (p *planner) startedWith(at string, last map[string]string) (rev string, ok bool, err error) {
	rev, ok = last[at]
	if p.stamped() {
		return rev, ok, nil
	}
	info, err := p.Lstat(at)
	if err != nil {
		return "", false, err
	}
	if info != nil && !info.ChangeTime.After(began(p.status.ExecMainStart, p.status.ActiveEnter)) {
		rev, err = p.revision(at, rev, p.unread(at))
		return rev, err == nil, err
	}
	p.unsure = p.unsure || !ok
	return rev, ok, nil
}

// future is the revision of a path as it will be; ok is false where that is not
// known yet.
func (p *planner) future(at string) (rev string, ok bool, err error) {
	if p.Deletes(at) {
		return kind.Absent, true, nil
	}
	if q := p.Expected(at); q != nil {
		rev, ok = p.futureRevision(at, q)
		return rev, ok, nil
	}
	if p.Changes(at) {
		return "", false, nil // made in stage
	}
	rev, err = p.revision(at, p.last.revision(at), p.unread(at))
	return rev, true, err
}

// reloadOwed plans a reload of what the unit rereads while it runs.
func (p *planner) reloadOwed() error {
	if len(p.reloads) == 0 || !running(p.status) {
		return nil
	}
	for _, at := range p.reloads {
		owed, err := p.rereads(at)
		if err != nil {
			return err
		}
		if !owed {
			continue
		}
		p.t.Act(kind.VerbReload, p.changed(at), kind.DisruptReload)
		p.t.Live, p.t.Finalize = p.reload, nil
		p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
		p.t.Before = p.baseline
		return nil
	}
	return nil
}

// rereads says whether a running unit has to read a file again. One that was
// started by another, or by a run that was cut off, read it then.
func (p *planner) rereads(at string) (bool, error) {
	if p.Withheld(at) {
		return false, nil
	}
	if !p.stamped() {
		which, since, err := newest(p.View, []string{at})
		return p.Changes(at) || which != "" && since.After(began(p.status.ExecMainStart, p.status.ActiveEnter)), err
	}
	rev, ok, err := p.future(at)
	old, known := p.last.Reloads[at]
	return !ok || known && old != rev || !known && p.Changes(at), err
}
