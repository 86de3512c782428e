package converge

import (
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// Disruption is what an action does to what runs.
type Disruption string

// The disruptions, least first.
const (
	DisruptNone    Disruption = "none"
	DisruptReload  Disruption = "reload"
	DisruptRestart Disruption = "restart"
	DisruptDrain   Disruption = "drain"
	DisruptReboot  Disruption = "reboot"
)

// Verb is what an action does.
type Verb string

// The verbs.
const (
	VerbCreate  Verb = "create"
	VerbUpdate  Verb = "update"
	VerbDelete  Verb = "delete"
	VerbRestore Verb = "restore"
	VerbFetch   Verb = "fetch"
	VerbIssue   Verb = "issue"
	VerbImport  Verb = "import"
	VerbLoad    Verb = "load"
	VerbSet     Verb = "set"
	VerbEnable  Verb = "enable"
	VerbDisable Verb = "disable"
	VerbUnmask  Verb = "unmask"
	VerbStart   Verb = "start"
	VerbStop    Verb = "stop"
	VerbRestart Verb = "restart"
	VerbReload  Verb = "reload"
	VerbCheck   Verb = "check"
)

// Action is one step from the observed to the desired state.
type Action struct {
	ID   desired.ID `json:"id"`
	Verb Verb       `json:"verb"`
	// Reason says what differs: "absent", "content differs", "mode 0644, want 0600".
	Reason string `json:"reason"`
	// Diff is a unified diff of the content; redacted where it is secret.
	Diff string `json:"diff,omitempty"`
	// Blocked says why the action can't be done; apply fails for it before it
	// changes anything.
	Blocked    string     `json:"blocked,omitempty"`
	Disruption Disruption `json:"disruption"`
	// Field is the contract field behind it, if known.
	Field string `json:"field,omitempty"`
}

// Plan is what would be done, in an order in which it could be done. Checks are
// no actions: they run with every apply and change nothing.
type Plan struct {
	Owner   desired.Owner `json:"owner"`
	Actions []Action      `json:"actions"`
	// Deferred can't be done where the plan was made (under a root directory) and
	// are done on first boot. They do not count as changes.
	Deferred []Action `json:"deferred,omitempty"`
	// Remarks are differences that berth reports and leaves alone.
	Remarks []string `json:"remarks,omitempty"`
	// Kept is what nobody wants any more and berth does not take away, since it is
	// not berth's alone.
	Kept []string `json:"kept,omitempty"`
}

// Empty says that the machine is as it should be.
func (p *Plan) Empty() bool { return len(p.Actions) == 0 }

// Span is one line of the timeline.
type Span struct {
	ID     desired.ID `json:"id"`
	Verb   Verb       `json:"verb"`
	Phase  string     `json:"phase"` // stage or commit
	Start  time.Time  `json:"start"`
	End    time.Time  `json:"end"`
	Waited desired.ID `json:"waited,omitempty"` // the last thing it waited for
	Detail string     `json:"detail,omitempty"`
	// Bytes are those that it brought; while it goes on, of Total (-1 if unknown).
	Bytes int64  `json:"bytes,omitempty"`
	Total int64  `json:"-"`
	Error string `json:"error,omitempty"`
}

// Result is what an apply did.
type Result struct {
	Plan     *Plan  `json:"plan"`
	Timeline []Span `json:"timeline"`
	// Unverified names the artifacts that came without a digest.
	Unverified []string `json:"unverified,omitempty"`
	// Resumed: an earlier apply had been interrupted.
	Resumed bool `json:"resumed,omitempty"`
}

// Observer is told of each action as it starts (End zero), again as a download
// goes on (End zero, more Bytes), and as it ends. It may
// be called from several goroutines at once and must not block.
type Observer func(Span)

// ActionError is an action that failed.
type ActionError struct {
	ID    desired.ID
	Verb  Verb
	Field string
	Err   error
}

// Error says what was being done and the cause.
func (e *ActionError) Error() string {
	return string(e.Verb) + " " + string(e.ID) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ActionError) Unwrap() error { return e.Err }
