package reconcile

import (
	"context"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Target is a document as it is asked of this machine.
type Target struct {
	*Document
	State  *desired.State
	Engine *converge.Engine
	// Agent is what the document says of the agent itself, which the state leaves out;
	// nil is nothing.
	Agent *selfupdate.Parts
	// Notes are what was tolerated in the document, has no effect, or was kept out.
	Notes []string
	// ControlPlane: the machine runs an API server.
	ControlPlane bool
}

// Opener makes targets.
type Opener interface {
	// Owner is whose a document is by its kind; "" where that can't be told.
	Owner(*Document) desired.Owner
	// Open decodes a document and translates it. The error is a *RefusedError where no
	// further try would change it.
	Open(context.Context, *Document) (*Target, error)
	// LastGood is the document of an owner that was in force last, as it was translated
	// then; nil where there is none. It needs no API server.
	LastGood(context.Context, desired.Owner) (*Target, error)
	// Former is what another agent was asked for, with what it left on the machine in
	// place of what only the cluster can tell. It needs no API server. The error is a
	// *RefusedError where the document can't be understood.
	Former(context.Context, *Document) (*Target, error)
}

// RefusedError is a document that can't be applied as it is.
type RefusedError struct{ Err error }

// Error is the cause.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Turns say when it is this machine's turn where a pool goes one after another.
type Turns interface {
	// Acquire is nil where it is not. It does not wait: Again is called when it is. What it
	// returns ends when the turn does, which others may have then.
	Acquire(context.Context) context.Context
	// Release gives on what was acquired or is waited for; without that it does nothing.
	Release(context.Context) error
}

// SelfUpdate puts the agent of a document in this one's place.
type SelfUpdate interface {
	// OnTrial says whether this agent has yet to prove that it does its work, and Prove
	// is its word.
	OnTrial(context.Context) (bool, error)
	Prove(context.Context) error
	// Claim makes the agent's parts berth's own that are a document's on the machine.
	Claim(context.Context, *selfupdate.Parts) error
	// Update puts other parts in place; ends: this process is about to end. An agent that
	// is not tried again is a *selfupdate.FellBackError. The error of ready ends it before
	// anything of the new agent is in place.
	Update(ctx context.Context, p *selfupdate.Parts, checksum string, ready func() error) (ends bool, err error)
	// Own is what the agent's own link, unit and drop-ins are to be; nil is nothing that
	// could be said now. Repair brings back what a scope of it says.
	Own() (*desired.State, error)
	Repair(ctx context.Context, own *desired.State, s converge.Scope) (*converge.Result, error)
}

// Node is the machine's own Node.
type Node interface {
	// Get is the Node as it was seen last; nil while there is none.
	Get() *core.Node
	// Patch merges labels and annotations into it.
	Patch(ctx context.Context, labels, annotations map[string]string) error
	// Condition sets a condition of the Node.
	Condition(ctx context.Context, c core.NodeCondition) error
}

// Recorder posts events about the Node.
type Recorder interface {
	Normal(reason, message string)
	Warning(reason, message string)
}

// Options are what a reconciler needs; all are required.
type Options struct {
	Host   host.Host
	Opener Opener
	// Owners are whose the documents may be; the first where nothing tells. A machine has
	// those of one of them.
	Owners []desired.Owner
	// Record is where is what has to be remembered of the documents.
	Record string
	// Published: the documents are those of a cluster manager, which waits for their
	// checksums on the Node, and which may have had another agent here.
	Published bool
	Turns     Turns
	Self      SelfUpdate
	Node      Node
	Events    Recorder
	Drift     config.Drift
	// Own are the files that the agent goes by. What is in one may be its own doing:
	// only a document changes one that is there.
	Own []string
	// SyncPeriod is between two looks at everything.
	SyncPeriod time.Duration
	// Delay is how long after it came a document is to be taken.
	Delay func(checksum string) time.Duration
	// Labels are those that the Node gets with each document.
	Labels func(*Target) map[string]string
	// Paused says until when repairs rest; a time that is over means that they do not.
	Paused func() time.Time
	// Ahead is called before a document changes anything, with what it asks for.
	Ahead func(context.Context, *desired.State)
	// Joined is called when there is a Node and the document is in force, perhaps more
	// than once.
	Joined func() error
	// Count counts what happens, by the names of package status.
	Count func(name string, n int)
	// Release is called after a document of so many bytes, and with 0 after a look.
	Release func(size int)
	// Explain is the code, the cause and the remedy of an error.
	Explain func(error) (code, cause, remedy string)
	Log     *slog.Logger
}
