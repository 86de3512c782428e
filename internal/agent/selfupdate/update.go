package selfupdate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// Recorder posts events about the Node.
type Recorder interface {
	Normal(reason, message string)
	Warning(reason, message string)
}

// Options are what an Updater needs; all are required.
type Options struct {
	Host host.Host
	// Ledger reads the ledger for all of the process.
	Ledger *ledger.Reader
	// Engine is one for the agent itself. With a contract, what it applies is a trial of
	// that for the time of within, and program brings the last good one back.
	Engine func(contract []byte, program string, within time.Duration) *converge.Engine
	// Program is where the program is that runs.
	Program string
	// Setup is what makes a program the machine's agent.
	Setup func(program string) (*desired.State, error)
	// Within is how long a new agent has to prove itself.
	Within time.Duration
	// Allow another program than berth in the agent's place.
	Allow  bool
	Events Recorder
	Log    *slog.Logger
}

// Updater puts the agent of a document in the place of the one that runs.
type Updater struct{ o Options }

// New returns an updater of this process.
func New(o Options) *Updater { return &Updater{o} }

// notifying lets systemd hear of berth when it works, and that it lives, whatever the
// document's unit says.
const (
	notifyingName = "05-berth.conf"
	notifying     = "[Service]\nType=notify\nNotifyAccess=main\nWatchdogSec=60\n"
)

// onTrial is the note of an agent that has yet to prove itself; nil where there is none.
func (u *Updater) onTrial(ctx context.Context) (*trial.Note, error) {
	n, err := trial.Load(u.o.Host)
	if _, torn := errors.AsType[*trial.TornError](err); torn {
		return nil, nil
	}
	if err != nil || n == nil || n.Owner != desired.OwnerBerth || !n.Waiting {
		return nil, err
	}
	if here, err := n.IsPresent(ctx, u.o.Host); err != nil || !here {
		return nil, err
	}
	return n, nil
}

// OnTrial says whether this agent has yet to prove itself: until then nothing else of
// the machine changes. It is another run of the unit than the one that put it there.
func (u *Updater) OnTrial(ctx context.Context) (bool, error) {
	n, err := u.onTrial(ctx)
	if err != nil || n == nil {
		return false, err
	}
	tried, err := trial.Tried(u.o.Host, desired.OwnerBerth)
	if err != nil || tried == nil {
		return false, err
	}
	v, ok := parse(tried.Document)
	if !ok || !sameFile(u.o.Host, linked(u.o.Host, v.runs()), u.o.Program) {
		return false, nil
	}
	run, err := u.run(ctx)
	return err == nil && run != v.By, err
}

// run is which run of the agent's unit this is.
func (u *Updater) run(ctx context.Context) (string, error) {
	st, err := u.o.Host.Unit(ctx, config.Unit)
	if err != nil {
		return "", fmt.Errorf("ask for the agent's unit: %w", err)
	}
	return st.InvocationID, nil
}

// Prove is this agent's word that it does its work.
func (u *Updater) Prove(ctx context.Context) error {
	if _, err := u.o.Engine(nil, "", 0).Confirm(ctx, desired.OwnerBerth); err != nil {
		return fmt.Errorf("confirm the new agent: %w", err)
	}
	u.o.Log.Info("this agent has taken the place of the one before", "program", u.o.Program)
	u.o.Events.Normal("AgentUpdated", "the agent of the document has taken the place of the one before: "+u.o.Program)
	return nil
}

// Update puts the agent that a document asks for in place, and starts it. Then this
// process ends: ends is true. The error has code and remedy where the new agent has
// fallen back; that one is not tried again. ready is asked when the new agent has been
// fetched and nothing of it is in place: its error ends the update there.
func (u *Updater) Update(ctx context.Context, p *Parts, checksum string, ready func() error) (ends bool, err error) {
	if p == nil {
		return false, nil
	}
	m, err := load(u.o.Host)
	if err != nil || m.KeptOut == checksum && !u.o.Allow {
		return false, err
	}
	base, kept, err := u.base(p)
	if err != nil || base == nil {
		return false, err
	}
	want := p.version(base)
	if want.same(base) || want.foreign().same(base) {
		return false, nil
	}
	waiting, err := u.onTrial(ctx)
	switch {
	case err != nil:
		return false, err
	case waiting != nil:
		if err := u.started(ctx, m, checksum); err != nil {
			return false, err
		}
		return true, u.restart(ctx)
	}
	switch failed, err := u.failed(ctx, m, checksum); {
	case err != nil:
		return false, err
	case failed:
		return false, u.fellBack(p)
	}
	return u.replace(ctx, &change{p: p, checksum: checksum, again: m.Tried == checksum, base: base, want: want, kept: kept, ready: ready})
}

// failed says whether the agent of a document is not tried again, and notes it.
func (u *Updater) failed(ctx context.Context, m record, checksum string) (bool, error) {
	if m.Tried != checksum {
		return m.FellBack == checksum, nil
	}
	failed := m.Again
	if !failed && m.Started { // a boot since then has taken it back
		var err error
		if failed, err = m.IsPresent(ctx, u.o.Host); err != nil {
			return false, err
		}
	}
	if !failed {
		return m.FellBack == checksum, nil
	}
	return true, record{FellBack: checksum}.save(u.o.Host)
}

func (u *Updater) restart(ctx context.Context) error {
	if err := u.o.Host.RestartUnit(ctx, config.Unit); err != nil && ctx.Err() == nil {
		return fmt.Errorf("start the new agent: %w", err)
	}
	return nil
}

// FellBackError is an agent of a document that did not prove itself, and is not tried
// again until the document changes.
type FellBackError struct{ Err error }

// Error is the cause.
func (e *FellBackError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FellBackError) Unwrap() error { return e.Err }

func (u *Updater) fellBack(p *Parts) error {
	what := "the agent's unit"
	if p.Program != nil {
		what = "the program " + p.Program.Path
	}
	return &FellBackError{&exitcode.Error{Number: exitcode.UnitStart, During: "update the agent", At: p.Field,
		Err:    fmt.Errorf("%s: %s of the document did not prove itself within %s: the agent before it runs again", p.Field, what, u.o.Within),
		Remedy: "journalctl -u " + config.Unit + " says why it ended. Change the document: this one's agent is not tried again."}}
}

// change is one update.
type change struct {
	p        *Parts
	checksum string
	// again: it was cut off once.
	again      bool
	base, want *version
	// kept: base is known to the engine as what to go back to.
	kept  bool
	ready func() error
}

// replace is the update, step by step: what is there already is not done again.
func (u *Updater) replace(ctx context.Context, c *change) (ends bool, err error) {
	if err := u.fetch(ctx, c); err != nil {
		return false, err
	}
	foreign, err := u.isForeign(c.want)
	if err != nil {
		return false, err
	}
	if foreign && !u.o.Allow {
		return false, u.keepOut(ctx, c)
	}
	if foreign {
		c.want = c.want.foreign()
	}
	as, err := u.isAsBefore(c)
	if err != nil {
		return false, err
	}
	if as {
		return false, u.adopt(ctx, c)
	}
	if err := c.ready(); err != nil {
		return false, err
	}
	return true, u.try(ctx, c)
}

// fetch makes the version in force one to which the engine can go back, and puts the
// copy of the new program beside it.
func (u *Updater) fetch(ctx context.Context, c *change) error {
	c.base.Before = "" // it makes room for the new one
	if c.kept {
		if err := u.keep(c.base); err != nil {
			return err
		}
	}
	if err := u.copyOf(ctx, c.base); err != nil {
		return fmt.Errorf("keep the agent in force: %w", err)
	}
	holding := *c.base
	var sources []desired.Resource
	if c.p.Program != nil && c.want.Copy != holding.Copy {
		holding.Before = c.want.Copy
		sources = append(sources, c.p.Program.resource())
	}
	if err := u.apply(ctx, &holding, sources...); err != nil {
		return fmt.Errorf("get the agent of the document: %w", err)
	}
	if c.kept {
		return nil
	}
	return u.keep(c.base)
}

// copyOf makes the copy of a program that is no link yet: a power cut must not find the
// link without it.
func (u *Updater) copyOf(ctx context.Context, v *version) error {
	if v.Program == "" || linked(u.o.Host, v.Program) == v.Copy {
		return nil
	}
	own, err := u.claimed()
	if err != nil {
		return err
	}
	staged := *v
	staged.Program, staged.Copy, staged.Before = "", own, v.Copy
	return u.apply(ctx, &staged, &desired.Artifact{Name: "agent in force", URLs: []string{"file://" + v.Program},
		Files: []desired.ArtifactFile{{Path: v.Copy, Mode: 0o755}}})
}

// keep makes a version the one to which the engine goes back.
func (u *Updater) keep(v *version) error {
	return trial.Keep(u.o.Host, desired.OwnerBerth, &trial.Contract{Document: v.document()})
}

func (u *Updater) apply(ctx context.Context, v *version, sources ...desired.Resource) error {
	st, err := v.state(u.o.Host, desired.AnyActivation, sources...)
	if err != nil {
		return err
	}
	_, err = u.o.Engine(nil, "", 0).Apply(ctx, st)
	return err
}

func (u *Updater) isForeign(v *version) (bool, error) {
	berth, err := isBerth(u.o.Host, v.runs())
	return !berth, err
}

// keepOut leaves the agent as it is.
func (u *Updater) keepOut(ctx context.Context, c *change) error {
	if err := u.apply(ctx, c.base); err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %s is not berth and is kept out; the rest of the document is in force. "+
		"To have it in this agent's place, set foreignAgent: allow in %s.", c.p.Field, called(c.want.Unit, c.want.DropIns), config.OptionsPath)
	u.o.Log.Warn(text)
	u.o.Events.Warning("ForeignAgent", text)
	return record{KeptOut: c.checksum}.save(u.o.Host)
}

// isAsBefore says whether the new agent is what runs already, at another path.
func (u *Updater) isAsBefore(c *change) (bool, error) {
	moved := *c.want
	moved.Program, moved.Copy = c.base.Program, c.base.Copy
	if !moved.same(c.base) || called(c.want.Unit, c.want.DropIns) != c.want.Program {
		return false, nil
	}
	return equal(u.o.Host, c.want.Copy, u.way(c.base))
}

func (u *Updater) adopt(ctx context.Context, c *change) error {
	if err := u.apply(ctx, c.want); err != nil {
		return err
	}
	return u.keep(c.want)
}

// way is the program that runs, at a path where it stays.
func (u *Updater) way(base *version) string {
	if base.Copy != "" {
		return base.Copy
	}
	return u.o.Program
}

// try puts the new agent in place, and starts it when all that brings the old one back
// is there.
func (u *Updater) try(ctx context.Context, c *change) error {
	st, err := c.want.state(u.o.Host, desired.AnyActivation)
	if err != nil {
		return err
	}
	if c.want.By, err = u.run(ctx); err != nil {
		return err
	}
	boot, err := ledger.PresentBoot(ctx, u.o.Host)
	if err != nil {
		return err
	}
	m := record{Tried: c.checksum, Boot: boot, Again: c.again}
	if err := m.save(u.o.Host); err != nil {
		return err
	}
	u.o.Log.Info("the agent of the document takes this one's place", "program", c.want.Copy, "within", u.o.Within.String())
	_, err = u.o.Engine(c.want.document(), u.way(c.base), u.o.Within).Apply(ctx, st)
	if t, ok := errors.AsType[*converge.TrialError](err); ok && t.Revert == nil && ctx.Err() == nil {
		return errors.Join(&FellBackError{err}, record{FellBack: c.checksum}.save(u.o.Host))
	}
	if err != nil {
		return err
	}
	if err := u.started(ctx, m, c.checksum); err != nil {
		return err
	}
	return u.restart(ctx)
}

// started notes that an agent is in place and about to be started: a run that was cut
// off may have put it there.
func (u *Updater) started(ctx context.Context, m record, checksum string) error {
	boot, err := ledger.PresentBoot(ctx, u.o.Host)
	if err != nil {
		return err
	}
	return record{Tried: checksum, Boot: boot, Again: m.Tried == checksum && m.Again, Started: true}.save(u.o.Host)
}
