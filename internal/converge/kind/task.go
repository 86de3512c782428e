package kind

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Task is what one resource needs. A converged resource's task has no actions
// and none of the functions.
type Task struct {
	ID   desired.ID
	Base *desired.Base
	Findings
	Record
	Work
}

// Findings are what a plan says of a task.
type Findings struct {
	Actions []Action
	// Refused is why the actions can't be done at all.
	Refused error
	// Deferred can't be done here (Options.Offline).
	Deferred []Action
	// Withheld: it was decided that nothing is done; Reported are the actions that it
	// would have been, if somebody is to know.
	Withheld bool
	Reported []Action
	Remarks  []string
	// Kept is what a plan leaves that nobody wants any more.
	Kept []string
	// Demand has a unit start anew.
	Demand Demand
	// Inputs are the files that a unit runs with.
	Inputs []string
}

// Demand is of a unit that runs and has to start anew though nothing that it was started with
// changes. Who may demand it is observed in a pass before the units.
type Demand struct {
	Unit   desired.ID
	Reason string
}

// Record is what a task changes of names, and of what the ledger knows.
type Record struct {
	// Changes are the names that commit changes, in order.
	Changes []*Change
	// Claims are ids of the ledger that are no paths.
	Claims []Claim
	// Forget are ids of the ledger that are dropped when the run has ended. Leaves are those
	// of which this owner wants nothing any more, and which others still want, or which are not
	// only berth's.
	Forget, Leaves []string
	// Regenerated are paths that Live makes anew; it uses their temporary names. A kind may
	// add those of which it makes them.
	Regenerated []string
	// Rewrites are files that Finalize or Live writes whole.
	Rewrites []string
	// Definitions are names of which systemd has to read some again, Revive units that
	// may stop as a consequence: a run that is cut off leaves them to the next.
	Definitions, Revive []string
}

// Work is what is done for a task, in this order.
type Work struct {
	// Stage does what may fail and shows nothing; it may add changes.
	Stage func(ctx context.Context, t *Task) error
	// Waits: stage waits for the API server. Rejoins: the machine has had before what
	// it waits for.
	Waits, Rejoins bool
	// StagedAfter orders stage functions: ids whose stage must have succeeded.
	StagedAfter []desired.ID
	// Fetched is what a download was.
	Fetched *Staged
	// Before runs between stage and commit: stopping what is about to lose its
	// definition.
	Before func(ctx context.Context) error
	// BestEffort runs beside the live work.
	BestEffort *BestEffort
	// Live changes what runs, after all changes are durable.
	Live func(ctx context.Context) error
	// LiveAfter orders Live after that of other tasks, besides Base.After.
	LiveAfter []desired.ID
	// Last comes when everything is live, but for units that failed in a run that goes on
	// beside them, and every name in place; it may add remarks,
	// actions with Remote, and what is kept, and keep what Forget named.
	Last func(ctx context.Context, t *Task) error
	// StayUp waits until what was started has stayed up. All else of the machine is done
	// by then.
	StayUp func(ctx context.Context) error
	// Remote changes objects of the cluster, when all of the machine is done: an API
	// server that does not answer holds up nothing else.
	Remote func(ctx context.Context) error
	// Finalize is bookkeeping of a converged resource, at the end of an apply.
	Finalize func() error
}

// BestEffort is what may fail without harm: nothing waits for it.
type BestEffort struct {
	// ID and Verb stand for it in the timeline.
	ID   desired.ID
	Verb Verb
	// After is what it waits for, if that is to be done.
	After []desired.ID
	Do    func(ctx context.Context) error
	// Missed begins the remark that its failure is.
	Missed string
}

// Claim is an id of the ledger that is no path.
type Claim struct {
	ID string
	// Asked is what the owner asks for, Was the state before, where the id is new.
	Asked, Was string
	// Applied is what is in force then, where Asked is not all of it.
	Applied string
	// Again: Was replaces what the ledger says.
	Again bool
	// From are other owners that lose the id to this one.
	From []desired.Owner
}

// TellClaims has all actions tell from whom an id is taken over that is no path.
func (t *Task) TellClaims() {
	for _, c := range t.Claims {
		from := takenOver(c.From)
		for i := range t.Actions {
			if a := &t.Actions[i]; !strings.HasSuffix(a.Reason, from) {
				a.Reason += from
			}
		}
	}
}

// Act enters an action.
func (t *Task) Act(v Verb, reason string, d Disruption) *Action {
	t.Actions = append(t.Actions, t.action(v, reason, d))
	return &t.Actions[len(t.Actions)-1]
}

// Block plans what can't be done: the plan shows it with the reason, and apply
// fails with err before anything changes.
func (t *Task) Block(v Verb, reason, why string, err error) {
	t.Act(v, reason, DisruptNone).Blocked = why
	t.Refused = &ActionError{ID: t.ID, Verb: VerbCheck, Field: t.Base.Field, Err: err}
}

// Failed is the error of what was done for the task.
func (t *Task) Failed(err error) error {
	return &ActionError{ID: t.ID, Verb: t.Verb(), Field: t.Base.Field, Err: err}
}

// Postpone enters an action that can't be done under another root.
func (t *Task) Postpone(v Verb, reason string) {
	t.Deferred = append(t.Deferred, t.action(v, reason, DisruptNone))
}

func (t *Task) action(v Verb, reason string, d Disruption) Action {
	return Action{ID: t.ID, Verb: v, Reason: reason, Disruption: d, Field: t.Base.Field}
}

// Verb is the word for the task in the timeline.
func (t *Task) Verb() Verb {
	if len(t.Actions) == 0 {
		return VerbCheck
	}
	return t.Actions[len(t.Actions)-1].Verb
}

// StageVerb is the word for what stage does: of a unit it prepares the links.
func (t *Task) StageVerb() Verb {
	if len(t.Actions) == 0 {
		return VerbCheck
	}
	return t.Actions[0].Verb
}

// Disrupts says whether an action stops or restarts something.
func (t *Task) Disrupts() bool {
	return slices.ContainsFunc(t.Actions, func(a Action) bool { return a.Disruption == DisruptRestart })
}

// Temporary says whether any change needs a temporary file.
func (t *Task) Temporary() bool { return slices.ContainsFunc(t.Changes, (*Change).Temporary) }

// ChangesName says whether the task changes a name.
func (t *Task) ChangesName(name string) bool {
	return slices.ContainsFunc(t.Changes, func(q *Change) bool { return q.Path == name })
}

// Refuse plans nothing of a resource but that it can't be had.
func (t *Task) Refuse(e *OwnedElsewhereError) {
	*t = Task{ID: t.ID, Base: t.Base}
	why := "--take-over moves it"
	if e.Part {
		why = "one document has all of the file, the other a part of it"
	}
	t.Block(VerbUpdate, "the "+string(e.Other)+" contract wants it otherwise", why, e)
}

// Withhold plans nothing of a task; its actions are reported or not.
func (t *Task) Withhold(report bool) {
	kept := Task{ID: t.ID, Base: t.Base, Findings: Findings{Withheld: true, Reported: t.Reported}}
	if report {
		kept.Reported = append(kept.Reported, t.Actions...)
	}
	*t = kept
}

// Obstruct notes what stands in the way of the actions.
func (t *Task) Obstruct(why error) {
	t.Refused = t.Failed(why)
	if len(t.Actions) > 0 {
		t.Actions[len(t.Actions)-1].Blocked = why.Error()
	}
}
