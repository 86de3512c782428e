package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

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
	// inForce: all of current is.
	inForce bool
	// looked: this process has looked at everything once, without an error.
	looked bool
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
	changed := !d.same(r.wanted) || d.Serial != r.wanted.Serial
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
	if r.record.Reverted != "" {
		r.said[applying] = cmp.Or(r.record.Why, "the document "+r.record.Reverted+" broke what ran, and was taken back")
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
