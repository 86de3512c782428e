package unit

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// planner plans what one unit does: start, stop, restart, reload.
type planner struct {
	v    *kind.View
	run  *run
	t    *kind.Task
	u    *desired.Unit
	unit *observed
	job  *job
}

func newPlanner(ctx context.Context, v *kind.View, t *kind.Task, u *desired.Unit) (*planner, error) {
	o, err := observe(ctx, v, u)
	return &planner{v: v, run: runOf(v), t: t, u: u, unit: o, job: &job{v: v, run: runOf(v), u: u, unit: o}}, err
}

// claim enters whose the unit's state is, and what it was before.
func (p *planner) claim() error {
	if p.v.Offline {
		return nil
	}
	id, was := string(p.u.ID()), "inactive"
	if running(p.unit.status) || p.unit.status.ActiveState == "activating" {
		was = "active"
	}
	if err := p.v.ClaimLive(p.t, id, asked(p.u), was, agree); err != nil || len(p.t.Claims) == 0 {
		return err
	}
	p.t.Claims[0].Applied = together(p.v.Ledger.Entries[id].Applied.Value, asked(p.u))
	return nil
}

// activation plans start, stop, restart or reload.
func (p *planner) activation() error {
	kept := p.u.Activation == desired.AnyActivation
	switch {
	case kept && (p.v.Offline || len(p.u.ReloadTriggers) == 0 || !running(p.unit.status)):
		return nil
	case p.v.Offline:
		p.t.Postpone(kind.VerbStart, "units start on first boot")
		return nil
	case p.v.Booting && p.u.Activation == desired.Started:
		p.enqueue()
		return nil
	case p.u.Activation == desired.Stopped:
		p.stop("is " + p.unit.status.ActiveState)
		return nil
	case !running(p.unit.status) && !p.unit.done():
		p.act(kind.VerbStart, "is "+p.unit.status.ActiveState, kind.DisruptNone, p.job.start)
		return p.rereadLoaded()
	}
	want, unknown, err := p.unit.wanted()
	if err != nil {
		return err
	}
	if !kept {
		reason, err := p.owed(want, unknown)
		if err != nil {
			return err
		}
		if reason != "" && p.unit.done() {
			p.act(kind.VerbStart, reason, kind.DisruptNone, p.job.start)
			return nil
		}
		if reason != "" {
			p.act(kind.VerbRestart, reason, kind.DisruptRestart, p.job.start)
			return nil
		}
	}
	at, err := p.unit.rereads(want)
	if err == nil && at != "" {
		p.act(kind.VerbReload, p.unit.in.changed(at), kind.DisruptReload, p.job.reload)
	}
	return err
}

func (p *planner) act(verb kind.Verb, reason string, d kind.Disruption, do func(context.Context) error) {
	p.t.Act(verb, reason, d)
	p.t.Before, p.t.Live, p.t.Finalize = p.job.baseline, do, nil
	p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
}

// owed says why a unit must run anew; "" if it must not: then it gets a stamp that says so.
func (p *planner) owed(want stamp, unknown string) (string, error) {
	in := &p.unit.in
	redefined, err := p.unit.redefined(want)
	if why := cmp.Or(p.v.Demanded(p.u.ID()), because(unknown, "changes")); why != "" || err != nil {
		return why, err
	}
	if !p.unit.stamped() {
		why, err := p.unit.owedByTime()
		if err == nil && why == "" {
			p.adopt(want)
		}
		return why, err
	}
	if why := cmp.Or(redefined, in.changed(in.differing(in.triggers, in.last.Triggers, want.Triggers))); why != "" {
		return why, nil
	}
	if in.last.State == skipped && p.unit.done() {
		p.t.Remarks = append(p.t.Remarks, skippedUnit(p.u.Name))
	}
	s, added, err := in.extended()
	if added {
		p.note(s)
	}
	return "", err
}

// adopt stamps a unit that runs with what is wanted but was started by another,
// or by a run that was cut off before it could.
func (p *planner) adopt(want stamp) {
	if p.unit.status.InvocationID == "" || p.unit.unsure {
		return
	}
	want.InvocationID = p.unit.status.InvocationID
	p.note(want)
	if p.t.Before == nil && slices.ContainsFunc(p.unit.in.started(), p.unit.in.immaterial) {
		// A run that is cut off after the change would leave a file newer than the start.
		p.t.Before = func(context.Context) error { return writeStamp(p.v.Host, p.u.Name, want) }
	}
}

// note enters a stamp of a unit that goes on running.
func (p *planner) note(s stamp) {
	p.t.Finalize = func() error { return writeStamp(p.v.Host, p.u.Name, s) }
	p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
}

// rereadLoaded has systemd read the definition of a unit that does not run and that
// it may hold, where that is not what the unit last ran with.
func (p *planner) rereadLoaded() error {
	if !loaded(p.unit.status) || len(p.unit.in.last.Definition) == 0 {
		return nil
	}
	want, _, err := p.unit.wanted()
	if err == nil {
		_, err = p.unit.redefined(want)
	}
	return err
}

// reread plans that systemd reads its definitions again for a unit that needs no
// restart: it was started with what is wanted, but its definition was another
// meanwhile, and systemd would go by that at the unit's next start.
func (p *planner) reread() error {
	if !p.v.Offline && running(p.unit.status) && !acts(p.t) && p.unit.holdsOld() {
		p.run.systemd.outdated()
		p.readAgain(cmp.Or(p.unit.in.changing(), "systemd holds another definition"))
	}
	return nil
}

func (p *planner) readAgain(reason string) {
	p.t.Act(kind.VerbReload, reason, kind.DisruptNone)
	p.t.Live = p.run.systemd.current
}

// enqueue plans that systemd starts a unit in this boot: what the boot was to start was read
// when another contract was in force. What runs already began with that, too.
func (p *planner) enqueue() {
	if p.unit.status.ActiveState == "activating" {
		return
	}
	if !running(p.unit.status) {
		p.enqueued(kind.VerbStart, "is to start with this boot", kind.DisruptNone, "does not start with this boot")
		return
	}
	verb, disruption, why := kind.VerbRestart, kind.DisruptRestart, p.unit.in.changing()
	if at := slices.IndexFunc(p.unit.in.reloads, p.v.Changes); why == "" && at >= 0 {
		why = p.unit.in.changed(p.unit.in.reloads[at])
		if p.unit.status.CanReload {
			verb, disruption = kind.VerbReload, kind.DisruptReload
		}
	}
	if why == "" {
		return
	}
	p.enqueued(verb, why, disruption, "goes on with what it started with")
	if verb == kind.VerbReload {
		p.t.Finalize = p.job.noteReread
		p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
	}
}

// enqueued has systemd do a job of the unit; missed says what is where it refuses that.
func (p *planner) enqueued(verb kind.Verb, reason string, d kind.Disruption, missed string) {
	p.t.Act(verb, reason, d)
	p.t.Live = func(ctx context.Context) error {
		if err := p.run.systemd.current(ctx); err != nil {
			return err
		}
		if err := p.v.Host.Enqueue(ctx, string(verb), p.u.Name); err != nil {
			p.run.remark(p.u.Name + " " + missed + ": " + err.Error())
		}
		return nil
	}
}

// stop plans that a unit ends: while its definition still stands where that goes. A boot may
// have a start of it in its queue, which a stop takes out.
func (p *planner) stop(reason string) {
	if down(p.unit.status) && (!p.v.Booting || !p.unit.status.Queued) {
		return
	}
	if path.Ext(p.unit.name) == ".slice" {
		p.stopSlice(reason)
		return
	}
	p.t.Act(kind.VerbStop, reason, kind.DisruptRestart)
	end := func(ctx context.Context) error { return stopUnit(ctx, p.v.Host, p.u.Name) }
	if p.unit.in.definition.fragment == "" {
		p.t.Before = end
		return
	}
	p.t.Live = end
}

// stopSlice plans that a slice ends when everything else is done, if it is empty
// then: to stop it would stop what runs in it.
func (p *planner) stopSlice(reason string) {
	name := p.unit.name
	p.t.Act(kind.VerbStop, reason, kind.DisruptNone)
	p.t.Last = func(ctx context.Context, _ *kind.Task) error {
		st, err := p.v.Host.Unit(ctx, name)
		if err != nil || !running(st) {
			return err
		}
		for _, in := range st.Dependents {
			if in, err := p.v.Host.Unit(ctx, in); err != nil || !down(in) {
				return err
			}
		}
		return stopUnit(ctx, p.v.Host, name)
	}
}

// giveBack plans that a unit runs which ran before berth, when what berth made of it is no longer
// wanted.
func (p *planner) giveBack(from desired.Activation) error {
	files, id, st := loadPath{p.v}, string(p.u.ID()), p.unit.status
	masked, err := files.masked(p.unit.name)
	if err != nil || masked && running(st) && !p.v.Changes(p.v.Real(st.FragmentPath)) {
		return err
	}
	if masked {
		p.t.Kept = append(p.t.Kept, id+" stays stopped: it ran before berth, but was masked already, so that nobody can start it")
		p.unit.in.definition.fragment = ""
		p.stop("its mask comes back")
		return nil
	}
	made, err := files.generated(p.unit.name)
	if err != nil {
		return err
	}
	if p.unit.in.definition.fragment != "" || made {
		p.unit.in.triggers, p.unit.in.reloads = sorted(p.unit.in.last.Triggers), sorted(p.unit.in.last.Reloads)
		return p.activation()
	}
	if from == desired.Stopped && down(st) {
		p.t.Kept = append(p.t.Kept, id+" is no longer wanted stopped and stays so: it ran before berth, without a definition to start it by")
	}
	p.stop("was not running before berth")
	return nil
}

func stopUnit(ctx context.Context, h host.Host, name string) error {
	if err := h.StopUnit(ctx, name); err != nil {
		return &kind.UnitError{Unit: name, Err: err}
	}
	return nil
}
