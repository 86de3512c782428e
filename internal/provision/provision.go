// Package provision is the run behind `berth provision`: a contract's document
// becomes a machine's state, and whatever happens becomes a result. It also
// waits for such a run (Wait) and answers for one that was killed
// (ResultIfMissing).
package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// Options are what a run needs. All are required but what may be nil.
type Options struct {
	Host host.Host
	// Config is the path of the document.
	Config string
	// Boot: the unit asks, not an operator. A run that has ended on this machine
	// is not repeated then.
	Boot bool
	// WaitFor is the milestone that makes the run a success.
	WaitFor Milestone
	// Command and Version name the program in what is reported, Program is how
	// somebody calls it.
	Command, Version, Program string
	// Start is when the program started.
	Start time.Time

	// Ask begins questions whose answers Facts waits for; may be nil.
	Ask    func(context.Context)
	Decode func([]byte) (contract.Contract, error)
	// Facts may tell the observer of what it asked others for.
	Facts func(context.Context, host.Host, converge.Observer) (component.Facts, error)
	// Apply brings the machine to a state; converge's engine.
	Apply func(context.Context, *desired.State, converge.Observer) (*converge.Result, error)
	// Remember reads what the programs of a state hold, when nobody waits any more.
	Remember func(context.Context, *desired.State) error
	// Await waits for milestones of the node up to one, and tells each it reaches.
	Await func(ctx context.Context, st *desired.State, to Milestone, reached func(Milestone)) error
	// Refused is why the command line can't be carried out; nil if it can.
	Refused error
	// Observer is told of each action, for a terminal; may be nil.
	Observer converge.Observer
	// Say prints a line for people; may be nil.
	Say func(string)
	// Status tells the service manager in a few words how it stands; may be nil.
	Status func(string)
}

// Provision runs to an end and returns the exit code. A result and its sentinel
// are written whatever happens; only where a result of this machine is to be
// kept, or another run goes on, is nothing written at all.
func Provision(ctx context.Context, o Options) (code int) {
	r := newRun(o)
	unlock, err := r.lockRun(ctx)
	if _, locked := errors.AsType[*host.LockedError](err); locked {
		return r.yield(ended(ctx, err))
	}
	if err == nil {
		defer func() { _ = unlock() }() // the kernel does it, too, when the program ends
	}
	r.withdraw = r.announce()
	defer func() { r.withdraw() }()
	if p := converge.Safely(func() error { code = r.perform(ctx, err); return nil }); p != nil {
		return r.rescue(ctx, p)
	}
	return code
}

// perform is the run once it holds the lock, or can't be known to be.
func (r *run) perform(ctx context.Context, err error) int {
	if r.Boot {
		if code, kept := r.keep(ctx); kept {
			return code
		}
	}
	r.open()
	defer func() { _ = r.log.Close() }()
	if err == nil {
		err = converge.Safely(func() error { return r.begin(ctx) })
	}
	return r.end(ctx, err)
}

// begin makes room for the run's own result, then runs.
func (r *run) begin(ctx context.Context) error {
	if r.Ask != nil {
		r.Ask(ctx)
	}
	r.syncRoot()
	if err := r.resetClonedDisk(ctx); err != nil { // while the sentinel still tells whose disk this was
		return err
	}
	if err := forget(r.Host, r.terms.ImageBuild); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, r.Start.Add(r.terms.Timeout), exitcode.ErrTimeout)
	defer cancel()
	return r.bounded(ctx)
}

// restarted says that systemd started the unit again by itself: nobody asks for
// another try.
func (r *run) restarted(ctx context.Context) bool {
	s, err := r.Host.Unit(ctx, report.ServiceUnit)
	return err == nil && s.NRestarts > 0
}

// keep says whether the result that is there shall stand, and its code. A run
// that was interrupted goes on at the next boot, or when somebody asks for it.
func (r *run) keep(ctx context.Context) (int, bool) {
	a, err := lastAttempt(r.Host, r.instance, r.terms.ImageBuild)
	if err != nil || !a.ended || a.interrupted() && !r.restarted(ctx) {
		return 0, false
	}
	code := a.exitCode()
	kept := fmt.Sprintf("nothing to do: provisioning of this machine has ended with exit code %d (%s); this repeats it: %s provision --provision-config=%s",
		code, a.sentinel, r.Program, r.Config)
	r.say(kept)
	r.withdraw()
	r.Status(kept)
	return code, true
}

// grace is what a run that was told to stop gets for it.
const grace = 10 * time.Second

// bounded runs the steps and gives them up when they do not end although the
// context has: a result is worth more than an orderly end.
func (r *run) bounded(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- converge.Safely(func() error { return r.steps(ctx) }) }()
	select {
	case err := <-done:
		return ended(ctx, err)
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-done:
		return ended(ctx, err)
	case <-late.C:
		return fmt.Errorf("%w, and %s did not stop", context.Cause(ctx), r.current())
	}
}

// ended adds why the context ended to an error that came of it.
func ended(ctx context.Context, err error) error {
	// These say themselves what was waited for, and how it stands. The probe of the API server ends
	// before cse_timeout so that it can; on a loaded machine the run may still end after it.
	var milestone *apiserver.MilestoneError
	var unreachable *apiserver.Error
	var locked *host.LockedError
	var panicked *converge.PanicError
	told := errors.As(err, &milestone) || errors.As(err, &unreachable) || errors.As(err, &locked) || errors.As(err, &panicked)
	if err == nil || ctx.Err() == nil || told && !errors.Is(context.Cause(ctx), exitcode.ErrInterrupted) {
		return err
	}
	if errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// steps is the flow: document, state, machine, node.
func (r *run) steps(ctx context.Context) error {
	if r.Refused != nil {
		return r.Refused
	}
	doc, err := r.read()
	if err != nil {
		return err
	}
	st, err := r.translate(ctx, doc)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, st); err != nil {
		return err
	}
	if doc.Terms().ImageBuild {
		r.reach(MilestoneImage)
		return nil
	}
	r.reach(MilestoneApplied)
	return r.during("wait", "for "+string(r.WaitFor), func() error { return r.Await(ctx, st, r.WaitFor, r.reach) })
}
