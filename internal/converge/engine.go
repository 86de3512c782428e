// Package converge makes a machine what a desired.State says: Plan reads, Apply
// is the only writer.
//
// Apply runs in two phases. Stage does everything that can fail on input or
// surroundings and shows nothing: checks, downloads, the certificate request,
// the durable temporary files. Commit gives the files their names and brings
// kernel, trust store and units to their state. A failure in stage leaves the
// machine as it was.
package converge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Options are what an engine needs. Host is required.
type Options struct {
	Host host.Host
	// Ledger reads the ledger for all of a process that ask for it; nil: this engine
	// alone reads it.
	Ledger *ledger.Reader
	Providers
	// Kinds are further kinds of resources, besides those of the registry.
	Kinds []kind.Kind
	// Command names the berth command for the lock's holder line.
	Command string
	// LockTimeout bounds the wait for another apply; zero means one minute.
	LockTimeout time.Duration
	// Workers bounds parallel actions; zero means 16, one makes the order
	// deterministic.
	Workers int
	// Pick chooses among ready actions (property tests); nil takes the first.
	Pick func(n int) int
	// Offline: the host is a root directory, not a running machine. Live changes
	// are deferred.
	Offline bool
	// NoFetch: artifacts that are missing are deferred (offline without --fetch).
	NoFetch bool
	// TakeOver makes this owner's what another contract wants otherwise; without it
	// that is refused.
	TakeOver bool
	// Trial makes changes of what runs trials; nil: nothing is taken back.
	Trial *Trial
	// GoOn: a unit that fails keeps only what comes after it from what is to happen to
	// it. A change on trial goes on beside units that are not on trial.
	GoOn bool
	// UnitTimeout is how long a run waits for one unit that is not on trial; zero leaves it
	// to the host.
	UnitTimeout time.Duration
	// Drainer empties the node for the time of a change; nil: nobody does.
	Drainer  Drainer
	Observer Observer
}

// Engine plans and applies.
type Engine struct {
	opt      Options
	kinds    map[string]kind.Kind
	contents kind.Contents
	ledger   *ledger.Reader
	// known is of the contract of Options.Trial.
	known trial.Known
	way   kind.Return
}

// New returns an engine.
func New(o Options) *Engine {
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = time.Minute
	}
	if o.Ledger == nil {
		o.Ledger = &ledger.Reader{}
	}
	return &Engine{opt: o, kinds: register(o.Kinds), ledger: o.Ledger}
}

// Plan compares a sealed state with the machine. It writes nothing. Where actions
// are blocked, the error is the one that Apply would fail with, beside the plan;
// with any other error there is no plan.
func (e *Engine) Plan(ctx context.Context, st *desired.State) (*Plan, error) {
	return e.PlanScope(ctx, st, Scope{})
}

// PlanScope is Plan of a part.
func (e *Engine) PlanScope(ctx context.Context, st *desired.State, s Scope) (*Plan, error) {
	led, err := e.ledger.Load(e.opt.Host)
	if err != nil {
		return nil, err
	}
	p, err := e.plan(ctx, st, led, s)
	if err != nil {
		return nil, err
	}
	return p.public(), p.blocked()
}

// Apply brings the machine to a sealed state. The result is never nil: after an
// error it says how far it came. Errors are *ActionError, joined where several
// actions failed, or errors of the lock.
func (e *Engine) Apply(ctx context.Context, st *desired.State) (*Result, error) {
	return e.ApplyScope(ctx, st, Scope{})
}

// ApplyScope is Apply of a part. It is no trial, and what it leaves is no contract
// that is known to be good. Where a run was cut off, a change is on trial, or another
// contract is the last good one, all resources are looked at. A scope that narrows
// nothing makes it Apply.
func (e *Engine) ApplyScope(ctx context.Context, st *desired.State, s Scope) (*Result, error) {
	a := &attempt{e: e, st: st, scope: s, res: &Result{Plan: &Plan{Owner: st.Owner}}}
	return a.res, e.exclusively(ctx, func() error { return e.restore(ctx, st.Owner, s, a.locked(ctx)) })
}

// exclusively holds the machine's lock while f runs.
func (e *Engine) exclusively(ctx context.Context, f func() error) error {
	if _, err := host.MkdirAll(e.opt.Host, paths.RunDir); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.opt.LockTimeout)
	defer cancel()
	unlock, err := e.opt.Host.Lock(ctx, ledger.LockPath, e.opt.Command)
	if err != nil {
		return err
	}
	err = Safely(f)
	return errors.Join(err, unlock())
}
