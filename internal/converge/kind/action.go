package kind

import (
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
	VerbMount   Verb = "mount"
	VerbUnmount Verb = "unmount"
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

// UnitError is a unit that did not come to the state that was asked for.
type UnitError struct {
	Unit string
	Err  error
}

// Error names the unit.
func (e *UnitError) Error() string { return e.Unit + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnitError) Unwrap() error { return e.Err }

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
