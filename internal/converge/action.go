package converge

import (
	"context"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// What an action is, the kinds say; the engine's users need no kind.
type (
	// Disruption is what an action does to what runs.
	Disruption = kind.Disruption
	// Verb is what an action does.
	Verb = kind.Verb
	// Action is one step from the observed to the desired state.
	Action = kind.Action
	// ActionError is an action that failed.
	ActionError = kind.ActionError
	// OwnedElsewhereError is a path of which another contract wants something else.
	OwnedElsewhereError = kind.OwnedElsewhereError
	// Providers do for kinds what is no matter of this machine alone.
	Providers = kind.Providers
	// Fetcher brings the files of an artifact onto the machine.
	Fetcher = kind.Fetcher
	// Staged is what a Fetcher did.
	Staged = kind.Staged
	// Images are the container images of the machine's runtime.
	Images = kind.Images
	// NodeSession are the calls of one node.
	NodeSession = kind.NodeSession
	// NodeState is what a Node says of its machine.
	NodeState = kind.NodeState
	// Issuer obtains and checks the node's client certificate.
	Issuer = kind.Issuer
	// Credential is a certificate and its key.
	Credential = kind.Credential
	// CredentialFile is a file of a credential, or a link.
	CredentialFile = kind.CredentialFile
	// Prober verifies a check.
	Prober = kind.Prober
	// UnitError is a unit that did not come to the state that was asked for.
	UnitError = kind.UnitError
	// LedgerVersionError is a ledger that a newer berth wrote.
	LedgerVersionError = ledger.VersionError
)

// The disruptions, least first.
const (
	DisruptNone    = kind.DisruptNone
	DisruptReload  = kind.DisruptReload
	DisruptRestart = kind.DisruptRestart
	DisruptDrain   = kind.DisruptDrain
	DisruptReboot  = kind.DisruptReboot
)

// The verbs.
const (
	VerbCreate  = kind.VerbCreate
	VerbUpdate  = kind.VerbUpdate
	VerbDelete  = kind.VerbDelete
	VerbRestore = kind.VerbRestore
	VerbFetch   = kind.VerbFetch
	VerbIssue   = kind.VerbIssue
	VerbImport  = kind.VerbImport
	VerbLoad    = kind.VerbLoad
	VerbSet     = kind.VerbSet
	VerbEnable  = kind.VerbEnable
	VerbStart   = kind.VerbStart
	VerbStop    = kind.VerbStop
	VerbRestart = kind.VerbRestart
	VerbReload  = kind.VerbReload
	VerbCheck   = kind.VerbCheck
)

// Progress says how many bytes of how many (-1 if unknown) the action that ctx
// belongs to has moved. The observer gets its span again, still without End.
func Progress(ctx context.Context, done, total int64) { kind.Progress(ctx, done, total) }

// Plan is what would be done, in an order in which it could be done. Checks are
// no actions: they run with the applies that need them and change nothing.
type Plan struct {
	Owner   desired.Owner `json:"owner"`
	Actions []Action      `json:"actions"`
	// Deferred can't be done where the plan was made (under a root directory) and
	// are done on first boot. They do not count as changes.
	Deferred []Action `json:"deferred,omitempty"`
	// Reported are actions of which it was decided that they are not done.
	Reported []Action `json:"reported,omitempty"`
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
	// Begun are the actions that the run came to: of one that did not fail all of the plan's.
	Begun []Action `json:"-"`
	// Unverified names the artifacts that came without a digest.
	Unverified []string `json:"unverified,omitempty"`
	// Resumed: an earlier apply had been interrupted.
	Resumed bool `json:"resumed,omitempty"`
	// Until is when a person has to have confirmed the change; zero where nobody has
	// to.
	Until time.Time `json:"until,omitzero"`
	// Left is how long there is until then by the machine's running time; "" where that
	// can't be said.
	Left string `json:"left,omitempty"`
}

// Observer is told of each action as it starts (End zero), again as a download
// goes on (End zero, more Bytes), and as it ends. It may
// be called from several goroutines at once and must not block.
type Observer func(Span)
