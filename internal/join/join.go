package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// Setup is what joining needs. Those without a remark are required.
type Setup struct {
	Host host.Host
	// Load reads the document and says what the machine must be for it.
	Load func(context.Context) (*Wanted, error)
	// Peers asks the cluster for versions; who does not answer says nothing.
	Peers func(context.Context, *Wanted) Peers
	// Apply brings the machine to a state. After a first configuration, the way back is
	// the machine as it was: Keep says that it holds.
	Apply func(context.Context, *desired.State) (*converge.Result, error)
	Keep  func(context.Context, *desired.State) error
	// Await waits for milestones of the node up to one, and tells each it reaches.
	Await func(ctx context.Context, st *desired.State, to provision.Milestone, reached func(provision.Milestone)) error
	// Stay has the agent keep the node where the document says so, and takes away one that
	// an earlier document asked for. The result is nil where there was nothing to do.
	Stay func(context.Context, *Wanted) (*converge.Result, error)
	// Remember reads what the programs of a state hold, when nobody waits any more.
	Remember func(context.Context, *desired.State) error
	// WaitFor is the milestone that makes it a success.
	WaitFor provision.Milestone
	// Timeout is for all of it; 0 is none.
	Timeout time.Duration
	// Command and Version name the program.
	Command, Version string
	// Start is when the program started.
	Start time.Time
	// Classify is the exit code of the command for an error.
	Classify func(error) int
	// Say tells of each milestone.
	Say func(line string)
}

// Wanted is what a document asks for on this machine.
type Wanted struct {
	State *desired.State
	// Server is the URL of the API server, Version that of kubelet.
	Server, Version string
	// Keeps: the agent stays on the machine and keeps it so.
	Keeps bool
	// Drains: the node is drained before another kubelet starts.
	Drains bool
	// Open: the document and the cluster leave something unsaid that the cluster may tell
	// a node.
	Open bool
	// Notes are what was tolerated in the document.
	Notes []desired.FieldNote
}

// Join makes the machine a node of the cluster that a NodeConfig names, and waits until
// the cluster says so. What is right already is not touched: a second run does nothing.
// A run that was cut off is continued by the next one. The result says what came of it,
// the error what kept it from the milestone that was asked for.
func Join(ctx context.Context, o Setup) (report.Join, error) {
	j := &joining{Setup: o, result: report.Join{Version: o.Version, Start: o.Start}}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, timedOut(o.Timeout))
		defer cancel()
	}
	unlock, err := provision.Lock(ctx, o.Host, o.Command)
	if err != nil {
		return j.end(because(ctx, err)), because(ctx, err) // the other run tells of itself
	}
	err = because(ctx, converge.Safely(func() error { return j.run(ctx) }))
	result := j.end(err)
	if late := errors.Join(result.Save(o.Host), unlock()); late != nil {
		err = errors.Join(err, late)
		result = j.end(err)
	}
	return result, err
}

func timedOut(after time.Duration) error {
	return &exitcode.Error{Number: exitcode.Timeout, Err: fmt.Errorf("the time of --timeout %s is over", after),
		Remedy: "Run the same command again: it goes on where this run ended. --timeout gives it more time."}
}

// because adds why the context ended to an error that came of it, unless it says itself
// what was waited for and how that stands.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	var milestone *apiserver.MilestoneError
	if err == nil || cause == nil || errors.Is(err, cause) || errors.As(err, &milestone) && !errors.Is(cause, exitcode.ErrInterrupted) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// joining is one run.
type joining struct {
	Setup
	result report.Join
}

func (j *joining) run(ctx context.Context) error {
	if err := j.hasLeft(); err != nil {
		return err
	}
	w, err := j.Load(ctx)
	if err != nil {
		return err
	}
	if err := j.fits(ctx, w); err != nil {
		return err
	}
	if err := j.bring(ctx, w); err != nil {
		return err
	}
	if w, err = j.complete(ctx, w); err != nil {
		return err
	}
	if err := j.Await(ctx, w.State, j.WaitFor, j.reach); err != nil {
		return err
	}
	if err := j.Keep(ctx, w.State); err != nil {
		return err
	}
	res, err := j.Stay(ctx, w)
	j.count(res)
	if err != nil {
		return err
	}
	if err := j.Remember(ctx, w.State); err != nil {
		j.Say("left for the next run: " + err.Error())
	}
	return nil
}

// complete asks again as a node for what the cluster did not tell a stranger, and brings
// that about, too.
func (j *joining) complete(ctx context.Context, w *Wanted) (*Wanted, error) {
	if !w.Open || j.WaitFor == provision.MilestoneKubelet {
		return w, nil
	}
	if err := j.Await(ctx, w.State, provision.MilestoneRegistered, j.reach); err != nil {
		return nil, err
	}
	again, err := j.Load(ctx)
	if err != nil || again.Open {
		return w, err
	}
	return again, j.bring(ctx, again)
}

// bring makes the machine what the document says.
func (j *joining) bring(ctx context.Context, w *Wanted) error {
	j.note(w)
	res, err := j.Apply(ctx, w.State)
	j.result.Left, j.result.Kept = nil, nil
	j.count(res)
	if err = provision.WithUnitLog(ctx, j.Host, err); err != nil {
		return err
	}
	j.reach(provision.MilestoneApplied)
	return nil
}

// count adds what a run of the engine came to; nil is none.
func (j *joining) count(res *converge.Result) {
	if res == nil {
		return
	}
	r := &j.result
	r.Resumed = r.Resumed || res.Resumed
	r.Unverified = append(r.Unverified, res.Unverified...)
	if res.Plan != nil {
		r.Changes += len(res.Plan.Actions)
		r.Left, r.Kept = append(r.Left, res.Plan.Remarks...), append(r.Kept, res.Plan.Kept...)
	}
}

// note takes over what the document's state says of itself.
func (j *joining) note(w *Wanted) {
	r, st := &j.result, w.State
	r.Server, r.Node = w.Server, provision.NodeOf(j.Host, st).Name
	r.Notes = slices.Concat(w.Notes, st.Unused, st.Partial)
	r.Unhandled = st.Unhandled
}

func (j *joining) reach(s provision.Milestone) {
	j.result.Milestone = string(s)
	j.Say("reached: " + string(s))
}

// hasLeft refuses a machine that is half out of its last cluster.
func (j *joining) hasLeft() error {
	info, err := ledger.Lstat(j.Host, recordPath)
	if err != nil {
		return fmt.Errorf("look for a run of leave that was cut off: %w", err)
	}
	if info == nil {
		return nil
	}
	led, err := new(ledger.Reader).Load(j.Host)
	if err != nil {
		return err
	}
	if r, err := unfinished(j.Host, led); r == nil || err != nil {
		return err
	}
	return &exitcode.Error{Number: exitcode.Internal, During: "look at the machine",
		Err:    errors.New("the machine is on its way out of a cluster: " + recordPath + " tells of a run that was cut off"),
		Remedy: "Run berth leave --force: it ends what that run began. Then join again."}
}

// Explain says what an error of a join means for operators, and what they can do.
func Explain(err error) report.Failure {
	f := provision.ExplainCommand(err)
	f.Hint = cmp.Or(f.Hint, "Correct what is named, and run it again.")
	return f
}

// end is the result of the run.
func (j *joining) end(err error) report.Join {
	r := j.result
	r.End = j.Host.Now()
	if err != nil {
		r.ExitCode, r.Failure = j.Classify(err), r.Of(Explain(err))
	} else if len(r.Kept) > 0 {
		r.ExitCode = exitcode.Kept
	}
	return r
}
