package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
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

// The work that there is.
const (
	workDocument = "document"
	workDrift    = "drift"
	workAll      = "all"
	workOwn      = "the agent's own files"
	workStatus   = "the Node's status"
)

// Reconciler keeps one machine.
type Reconciler struct {
	o     Options
	queue workqueue.TypedRateLimitingInterface[string]
	// statuses is the work on the Node.
	statuses workqueue.TypedRateLimitingInterface[string]

	// kept is what the machine is kept as.
	kept apiserver.Latest[desired.State]
	// working is held while the machine is changed.
	working sync.Mutex

	mu     sync.Mutex
	wanted *Document
	node   sync.Once
	dirty  map[desired.ID]bool
	status nodeStatus

	// refused are labels that the Node does not get; they belong to the worker of statuses.
	refused map[string]string
	// announced is the checksum that an event told of last; it is of that worker, too.
	announced string

	// lacked is what was told of a Secret without a document last; it belongs to who sees
	// Secrets.
	lacked string

	// The rest belongs to the one worker of queue.
	// saved is what is on the disk of record.
	record, saved record
	current       *Target
	// noted are the notes of a document that an event told of last.
	noted string
	// owner is whose current is, or is to be.
	owner desired.Owner
	// resumed is the last good document with which this process began; nil where there was
	// none.
	resumed *Target
	// inForce: all of current is.
	inForce bool
	// updated: the agent is that of current, or will not become it.
	updated bool
	watch   context.CancelFunc
	// unwatched: what is kept could not be watched.
	unwatched bool
	guard     *guard
	// written is how many repairs in a row have found that somebody goes on writing.
	written int
	// said is what was told of each concern last, left the drift that was told and is
	// not repaired, ownLeft that of the agent's own files.
	said          map[concern]string
	left, ownLeft map[desired.ID]string
	// good is the last good contract as this reconciler left it, seenGood the one that is
	// there, and byHandTold what was told of it last.
	good       keptAs
	seenGood   known
	byHandTold string
	// locked is since when another run holds the machine's lock, zero where none is known to.
	locked time.Time
	cut    cutOff
	// uninherited is what was told of the former agent last.
	uninherited string
}

// New returns a reconciler.
func New(o Options) *Reconciler {
	g := o.Drift.StormGuard
	return &Reconciler{
		o: o, queue: newQueue(5 * time.Minute), statuses: newQueue(time.Minute), dirty: map[desired.ID]bool{}, said: map[concern]string{}, left: map[desired.ID]string{}, ownLeft: map[desired.ID]string{},
		refused: map[string]string{},
		guard:   newGuard(g.Repairs, g.Within.Duration, g.Pause.Duration), watch: func() {},
	}
}

// Kept is what the machine is kept as, for those who look whether it is so.
func (r *Reconciler) Kept() *apiserver.Latest[desired.State] { return &r.kept }

// SeeSecret takes the Secret as it is now; nil where there is none. It does not wait.
func (r *Reconciler) SeeSecret(s *core.Secret) {
	err := errGone
	if s != nil {
		var d *Document
		if d, err = Of(s); err == nil {
			r.lacked = ""
			r.See(d)
			return
		}
	}
	r.tellLack(err)
}

// See takes a document. It does not wait.
func (r *Reconciler) See(d *Document) {
	r.mu.Lock()
	changed := !d.same(r.wanted)
	r.wanted = d
	r.mu.Unlock()
	if changed {
		r.queue.Forget(workDocument)
		r.queue.Add(workDocument)
	}
}

// SeeNode is called when the Node has changed. It may say that the document which waits
// is in force already.
func (r *Reconciler) SeeNode() {
	r.statuses.Add(workStatus)
	r.node.Do(func() { r.queue.Add(workDocument) })
}

// Again takes the document that waits for this machine's turn.
func (r *Reconciler) Again() { r.queue.Add(workDocument) }

// LookAgain looks at everything.
func (r *Reconciler) LookAgain() { r.queue.Add(workAll) }

// Run works until ctx ends. The error is of the machine, before any work.
func (r *Reconciler) Run(ctx context.Context) error {
	defer func() { r.watch() }()
	if err := r.begin(ctx); err != nil {
		return err
	}
	var both sync.WaitGroup
	for _, q := range []workqueue.TypedRateLimitingInterface[string]{r.queue, r.statuses} {
		both.Go(func() { r.work(ctx, q) })
	}
	both.Wait()
	return nil
}

// work does what is in a queue until ctx ends.
func (r *Reconciler) work(ctx context.Context, q workqueue.TypedRateLimitingInterface[string]) {
	defer context.AfterFunc(ctx, q.ShutDown)()
	for {
		item, end := q.Get()
		if end {
			return
		}
		r.handle(ctx, q, item)
		q.Done(item)
	}
}

// begin goes on with what was in force: it is kept up although no API server may
// answer.
func (r *Reconciler) begin(ctx context.Context) (err error) {
	if r.record, err = loadRecord(r.o.Host, r.o.Record); err != nil {
		return err
	}
	r.saved = r.record
	r.owner = r.o.Owners[0]
	if slices.Contains(r.o.Owners, r.record.Owner) {
		r.owner = r.record.Owner
	} else if err := r.part(); err != nil {
		return err
	}
	if r.good, err = r.keptNow(); err != nil {
		return err
	}
	last := r.lastGood(ctx)
	if last == nil {
		r.inherit(ctx)
		return nil
	}
	switch onTrial, err := trial.Load(r.o.Host); {
	case isTorn(err), onTrial != nil:
		r.queue.AddAfter(workAll, resumeWait)
	case err != nil:
		return err
	default:
		r.queue.AddAfter(workAll, startWait)
	}
	r.resumed = last
	r.take(ctx, last)
	return nil
}

// lastGood is the document that was in force last; nil where there is none.
func (r *Reconciler) lastGood(ctx context.Context) *Target {
	last, err := r.o.Opener.LastGood(ctx, r.owner)
	if err != nil {
		r.o.Log.Error("the last document can't be read any more", "error", err)
		return nil
	}
	if last != nil && r.record.Sum == last.Sum {
		last.Checksum = r.record.Checksum
	}
	return last
}

// resumeWait is how long the document of a change that was cut off has to come again,
// before the last good one is in force again.
const resumeWait = 30 * time.Second

// startWait is how long a document has to come after a start, before the last good one is
// in force again as a whole: an older one may have been brought back with what berth
// remembers.
const startWait = 10 * time.Second

// errWaits is a document that waits for the machine's turn: it comes again with it, and
// the pauses between tries go on to grow.
var errWaits = errors.New("waits for this machine's turn")

func (r *Reconciler) handle(ctx context.Context, q workqueue.TypedRateLimitingInterface[string], item string) {
	err := converge.Safely(func() error { return r.do(ctx, item) })
	if ctx.Err() != nil || errors.Is(err, errWaits) {
		return
	}
	if err == nil {
		q.Forget(item)
		return
	}
	r.o.Log.Error(item+" failed", "error", err)
	q.AddRateLimited(item)
}

func (r *Reconciler) do(ctx context.Context, item string) error {
	if item == workStatus {
		return r.writeStatus(ctx)
	}
	r.working.Lock()
	defer r.working.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if item == workDocument {
		return r.document(ctx)
	}
	onTrial, err := r.o.Self.OnTrial(ctx)
	if err != nil {
		return err
	}
	if onTrial { // it has its document first
		r.queue.AddAfter(item, time.Second)
		return nil
	}
	if yields, err := r.yields(ctx); err != nil || yields {
		r.queue.AddAfter(item, recheck)
		return err
	}
	switch item {
	case workDrift:
		return r.drift(ctx)
	case workOwn:
		return r.ownDrift(ctx)
	}
	return r.all(ctx)
}

// Rest waits until nothing is changed, and lets nothing begin until it is told to go
// on: what ends the process then cuts no change off.
func (r *Reconciler) Rest() (goOn func()) {
	r.working.Lock()
	return r.working.Unlock
}
