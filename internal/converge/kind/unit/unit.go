// Package unit is the kind of systemd units. What a unit consists of, systemd
// says; what it will consist of when the plan is done follows from the plan.
package unit

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// Kind is the kind of units.
type Kind struct{}

var (
	_ kind.Remover   = Kind{}
	_ kind.Closer    = Kind{}
	_ kind.Definer   = Kind{}
	_ kind.Runner    = Kind{}
	_ kind.Inheriter = Kind{}
)

// Name implements kind.Kind.
func (Kind) Name() string { return "unit" }

// Pass implements kind.Kind: what a unit needs depends on what happens to its
// files.
func (Kind) Pass() kind.Pass { return kind.Units }

// Names implements kind.Kind.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	u := r.(*desired.Unit)
	out := append(takenFor(v, u), string(u.ID()))
	if u.Enablement == desired.AnyEnablement {
		return out
	}
	p := &planner{View: v, u: u, t: &kind.Task{Base: &u.Base}, name: u.Name}
	fragment, err := p.search()
	if err != nil {
		return out
	}
	links, err := p.installLinks(fragment)
	if err != nil {
		return out
	}
	for _, l := range links {
		out = append(out, l.Path)
	}
	return out
}

// Defines implements kind.Definer: what enables a unit follows from what is left
// of its definition.
func (Kind) Defines(name string) bool {
	p, ok := partOf(name)
	return ok && p.role != wantedLink
}

// Unit implements kind.Runner.
func (Kind) Unit(id desired.ID) string { return strings.TrimPrefix(string(id), "unit:") }

// Runs implements kind.Runner.
func (Kind) Runs(r desired.Resource) bool { return r.(*desired.Unit).Activation == desired.Started }

// Needed implements kind.Runner.
func (k Kind) Needed(r desired.Resource) bool { return k.Runs(r) && !r.(*desired.Unit).Optional }

// Before implements kind.Inheriter. A unit whose definition is inherited did not run
// before that; of others nobody knows, so that they stay.
func (k Kind) Before(r desired.Resource, names []string) (was string, known bool) {
	defined := slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == r.(*desired.Unit).Name && k.Defines(name) })
	return "inactive", defined
}

// planner is what is known of one unit while it is planned.
type planner struct {
	*kind.View
	sys *systemd
	u   *desired.Unit
	t   *kind.Task
	// name is systemd's real one, where an alias was asked for.
	name   string
	status host.UnitStatus
	// assumed: status is what the plan expects of a service that systemd has not loaded.
	assumed bool
	// fragment is the definition's path as it will be, drops are the drop-ins; gone is
	// what is no part of the definition any more.
	fragment    string
	drops, gone []string
	triggers    []string
	reloads     []string
	// bundles are what the system makes of CA certificates that are triggers.
	bundles []string
	// last is what the unit was started with, as far as berth noted it; unsure says that it
	// is not known, and can't be now.
	last   stamp
	unsure bool
}

// Observe implements kind.Kind.
func (Kind) Observe(ctx context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	u := r.(*desired.Unit)
	p := &planner{View: v, sys: systemdOf(v), u: u, t: t, name: u.Name}
	if err := p.ask(ctx); err != nil {
		return err
	}
	if err := p.claim(); err != nil {
		return err
	}
	for _, step := range []func() error{p.unmask, p.enablement, p.activation} {
		if err := step(); err != nil {
			return err
		}
	}
	p.reread()
	t.Inputs = slices.Concat(p.inputs(), p.reloads)
	return nil
}

// reread plans that systemd reads its definitions again for a unit that needs no
// restart: it was started with what is wanted, but its definition was another
// meanwhile, and systemd would go by that at the unit's next start.
func (p *planner) reread() {
	if p.Offline || !running(p.status) || p.t.Live != nil || p.t.Before != nil || !p.holdsOld(p.status) {
		return
	}
	reason := p.changing()
	if reason == "" {
		reason = "systemd holds another definition"
	}
	p.t.Act(kind.VerbReload, reason, kind.DisruptNone)
	p.sys.outdated()
	p.t.Live = p.sys.current
}

// ask asks systemd what there is, and derives from the plan what there will be.
func (p *planner) ask(ctx context.Context) error {
	if !p.Offline && !unitname.IsTemplate(p.u.Name) {
		var err error
		if p.status, err = p.sys.unit(ctx, p.u.Name); err != nil {
			return err
		}
		if p.status.ID != "" && p.status.LoadState == "loaded" {
			p.name = p.status.ID
		}
		if p.last, err = readStamp(p.Host, p.u.Name); err != nil {
			return err
		}
		if p.last, err = p.last.ofThisBoot(ctx, p.Host); err != nil {
			return err
		}
	}
	if err := p.locate(); err != nil {
		return err
	}
	p.collectTriggers()
	return nil
}

// claim enters whose the unit's state is, and what it was before.
func (p *planner) claim() error {
	if p.Offline {
		return nil
	}
	id := string(p.u.ID())
	if err := p.ClaimLive(p.t, id, asked(p.u), activity(p.status), agree); err != nil || len(p.t.Claims) == 0 {
		return err
	}
	p.t.Claims[0].Applied = together(p.Ledger.Entries[id].Applied.Value, asked(p.u))
	return nil
}

// activity is what the ledger remembers of a unit's state.
func activity(st host.UnitStatus) string {
	if running(st) || st.ActiveState == "activating" {
		return "active"
	}
	return "inactive"
}

// asked is what a contract wants of a unit: "enabled/started".
func asked(u *desired.Unit) string { return string(u.Enablement) + "/" + string(u.Activation) }

// agree says whether two wishes can both come true.
func agree(a, b string) bool {
	e1, a1, _ := strings.Cut(a, "/")
	e2, a2, _ := strings.Cut(b, "/")
	return (e1 == e2 || e1 == "" || e2 == "") && (a1 == a2 || a1 == "" || a2 == "")
}

// together is what is in force of a unit when one more wish has come true: who says nothing of
// its activation leaves what another, or an earlier document, has made of it.
func together(before, asked string) string {
	e1, a1, _ := strings.Cut(before, "/")
	e2, a2, _ := strings.Cut(asked, "/")
	return cmp.Or(e2, e1) + "/" + cmp.Or(a2, a1)
}

func running(st host.UnitStatus) bool {
	return st.ActiveState == "active" || st.ActiveState == "reloading"
}

func down(st host.UnitStatus) bool { return st.ActiveState == "inactive" || st.ActiveState == "failed" }

// done says that the unit has nothing more to do: a oneshot service that ran to
// its end, or a unit that systemd skipped.
func (p *planner) done() bool {
	return p.status.ActiveState == "inactive" && (p.last.State == finished && p.status.ServiceType == "oneshot" || p.last.State == skipped)
}

// activation plans start, stop, restart or reload.
func (p *planner) activation() error {
	switch {
	case p.u.Activation == desired.AnyActivation && (p.Offline || len(p.u.ReloadTriggers) == 0):
		return nil
	case p.u.Activation == desired.AnyActivation:
		return p.reloadOwed()
	case p.Offline:
		p.t.Postpone(kind.VerbStart, "units start on first boot")
		return nil
	case p.Booting && p.u.Activation == desired.Started:
		p.enqueue()
		return nil
	case p.u.Activation == desired.Stopped:
		p.stop("is " + p.status.ActiveState)
		return nil
	case !running(p.status) && !p.done():
		p.act(kind.VerbStart, "is "+p.status.ActiveState, kind.DisruptNone)
		return p.rereadLoaded()
	}
	reason, err := p.owed()
	if err != nil || reason != "" {
		return p.again(reason, err)
	}
	if p.done() && p.last.State == skipped {
		p.t.Remarks = append(p.t.Remarks, p.u.Name+" is skipped: a condition of its definition does not hold")
	}
	return p.reloadOwed()
}

// enqueue plans that systemd starts a unit in this boot: what the boot was to start was read
// when another contract was in force. What runs already began with that, too.
func (p *planner) enqueue() {
	if p.status.ActiveState == "activating" {
		return
	}
	if !running(p.status) {
		p.t.Act(kind.VerbStart, "is to start with this boot", kind.DisruptNone)
		p.enqueued("start", "does not start with this boot")
		return
	}
	rereads, why := slices.IndexFunc(p.reloads, p.Changes), p.changing()
	switch {
	case why == "" && rereads < 0:
	case why == "" && p.status.CanReload:
		p.t.Act(kind.VerbReload, p.changed(p.reloads[rereads]), kind.DisruptReload)
		p.enqueued("reload", "goes on with what it started with")
		p.t.Finalize = p.noteReread
		p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
	default:
		if why == "" {
			why = p.changed(p.reloads[rereads])
		}
		p.t.Act(kind.VerbRestart, why, kind.DisruptRestart)
		p.enqueued("restart", "goes on with what it started with")
	}
}

// noteReread stamps a unit that is to read its files again.
func (p *planner) noteReread() error {
	now, err := p.present()
	if err == nil {
		err = p.noteReload(now)
	}
	return err
}

// enqueued has systemd do a job of the unit; missed says what is where it refuses that.
func (p *planner) enqueued(job, missed string) {
	p.t.Live = func(ctx context.Context) error {
		if err := p.sys.current(ctx); err != nil {
			return err
		}
		if err := p.Host.Enqueue(ctx, job, p.u.Name); err != nil {
			p.sys.remark(p.u.Name + " " + missed + ": " + err.Error())
		}
		return nil
	}
}

// again plans that a unit runs anew with what changed.
func (p *planner) again(reason string, err error) error {
	if err != nil {
		return err
	}
	if p.done() {
		p.act(kind.VerbStart, reason, kind.DisruptNone)
		return nil
	}
	p.act(kind.VerbRestart, reason, kind.DisruptRestart)
	return nil
}

func (p *planner) act(verb kind.Verb, reason string, d kind.Disruption) {
	p.t.Act(verb, reason, d)
	p.t.Live = p.start
	p.t.Rewrites = append(p.t.Rewrites, stampPath(p.u.Name))
	p.t.Before = p.baseline
}

// stop plans that a unit ends: while its definition still stands where that goes. A boot may
// have a start of it in its queue, which a stop takes out.
func (p *planner) stop(reason string) {
	if down(p.status) && (!p.Booting || !p.status.Queued) {
		return
	}
	if path.Ext(p.name) == ".slice" {
		p.stopSlice(reason)
		return
	}
	p.t.Act(kind.VerbStop, reason, kind.DisruptRestart)
	end := func(ctx context.Context) error { return stopUnit(ctx, p.Host, p.u.Name) }
	if p.fragment == "" {
		p.t.Before = end
		return
	}
	p.t.Live = end
}

// stopSlice plans that a slice ends when everything else is done, if it is empty
// then: to stop it would stop what runs in it.
func (p *planner) stopSlice(reason string) {
	p.t.Act(kind.VerbStop, reason, kind.DisruptNone)
	p.t.Last = func(ctx context.Context, _ *kind.Task) error {
		st, err := p.Host.Unit(ctx, p.name)
		if err != nil || !running(st) {
			return err
		}
		for _, name := range st.Dependents {
			if in, err := p.Host.Unit(ctx, name); err != nil || !down(in) {
				return err
			}
		}
		return stopUnit(ctx, p.Host, p.name)
	}
}

func stopUnit(ctx context.Context, h host.Host, name string) error {
	if err := h.StopUnit(ctx, name); err != nil {
		return &kind.UnitError{Unit: name, Err: err}
	}
	return nil
}

// takenFor are the names that berth took away for a unit: a mask, and of one that
// is not to start at boot the links that made it.
func takenFor(v *kind.View, u *desired.Unit) []string {
	if u.Enablement != desired.Disabled {
		if mask := adminDir + "/" + u.Name; v.Ledger.Entries[mask].Gone() {
			return []string{mask}
		}
		return nil
	}
	var out []string
	for name, e := range v.Ledger.Entries {
		if e.Gone() && path.Base(name) == u.Name {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
