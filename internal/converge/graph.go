package converge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// node is one piece of work of a phase.
type node struct {
	id    desired.ID
	verb  Verb
	field string
	after []desired.ID
	// behind are nodes that start units: this one comes when their programs run, or they have
	// ended.
	behind []desired.ID
	// optional: where it fails, all starts that does not come after it.
	optional bool
	do       func(ctx context.Context) error
	// began: its unit's program has begun to run, or it has ended. well: it has run, and did
	// not fail.
	began, well bool
}

// graph runs nodes, each as soon as what it comes after has succeeded. Edges to
// ids that are no nodes of the graph are already satisfied.
type graph struct {
	nodes   []*node
	workers int
	// pick chooses among n ready nodes; nil takes the first.
	pick  func(n int) int
	phase string
	now   func() time.Time
	tell  func(Span)
}

// GivenUp is the error of a span that was cancelled because another failed, or
// because the run was stopped: it tells nothing of its own.
const GivenUp = "given up"

// event is what a node has come to: its unit's program has begun to run, or it has ended.
type event struct {
	n     *node
	ended bool
	err   error
}

// run returns the errors of the nodes that failed, joined. After the failure of one that
// is not optional nothing new starts and what runs is cancelled.
func (g *graph) run(ctx context.Context) error {
	stopped := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waits, after := g.edges(func(n *node) []desired.ID { return n.after }, nil)
	waits, behind := g.edges(func(n *node) []desired.ID { return n.behind }, waits)
	ready := g.initially(waits)
	events := make(chan event, 2*len(g.nodes)) // nobody waits who says that something began
	last := map[*node]desired.ID{}
	var errs []error
	ended, broken := 0, false
	goesOn := func() bool { return len(errs) == 0 || !broken && stopped.Err() == nil }
	free := func(followers []*node, from *node) {
		for _, f := range followers {
			if waits[f]--; waits[f] == 0 {
				last[f] = from.id
				ready = append(ready, f)
			}
		}
	}
	for running := 0; running > 0 || (len(ready) > 0 && goesOn()); {
		for len(ready) > 0 && running < g.workers && goesOn() {
			var n *node
			n, ready = g.take(ready)
			running++
			waited := last[n]
			go func() {
				events <- event{n: n, ended: true, err: g.one(ctx, n, waited, func() { events <- event{n: n} })}
			}()
		}
		d := <-events
		if !d.n.began {
			d.n.began = true
			free(behind[d.n.id], d.n)
		}
		if !d.ended {
			continue
		}
		running--
		ended++
		if d.err != nil {
			errs = append(errs, d.err)
			if !d.n.optional {
				broken = true
				cancel()
			}
			continue
		}
		d.n.well = true
		free(after[d.n.id], d.n)
	}
	if len(errs) == 0 && ended < len(g.nodes) {
		return errCircle
	}
	return causes(errs)
}

// errCircle should not happen: Seal refuses it.
var errCircle = errors.New("some actions wait for each other and never ran")

// causes drops cancellations that only follow from another error.
func causes(errs []error) error {
	var real []error
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			real = append(real, err)
		}
	}
	if len(real) == 0 {
		real = errs
	}
	return errors.Join(real...)
}

// isWell says whether all is done but what is optional.
func (g *graph) isWell() bool {
	return !slices.ContainsFunc(g.nodes, func(n *node) bool { return !n.optional && !n.well })
}

// leaves are the errors that others were joined of.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	if all := errors.Join(joined.Unwrap()...); all == nil || all.Error() != err.Error() { // it says more than they do
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, leaves(e)...)
	}
	return out
}

// edges are those of one sort, and on how many each node waits, besides those counted before.
func (g *graph) edges(of func(*node) []desired.ID, waits map[*node]int) (map[*node]int, map[desired.ID][]*node) {
	known := map[desired.ID]bool{}
	for _, n := range g.nodes {
		known[n.id] = true
	}
	if waits == nil {
		waits = map[*node]int{}
	}
	followers := map[desired.ID][]*node{}
	for _, n := range g.nodes {
		for _, id := range of(n) {
			if known[id] && id != n.id {
				waits[n]++
				followers[id] = append(followers[id], n)
			}
		}
	}
	return waits, followers
}

func (g *graph) initially(waits map[*node]int) []*node {
	var ready []*node
	for _, n := range g.nodes {
		if waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	return ready
}

func (g *graph) take(ready []*node) (*node, []*node) {
	i := 0
	if g.pick != nil {
		i = g.pick(len(ready))
	}
	n := ready[i]
	return n, append(ready[:i:i], ready[i+1:]...)
}

// one runs a node in a goroutine of its own. The observer may panic, too. began is called, at
// most once, when the program runs of a unit that the node starts.
func (g *graph) one(ctx context.Context, n *node, waited desired.ID, began func()) error {
	var once sync.Once
	ctx = host.WithBegun(ctx, func() { once.Do(began) })
	return Safely(func() error { return g.do(ctx, n, waited) })
}

func (g *graph) do(ctx context.Context, n *node, waited desired.ID) error {
	span := Span{ID: n.id, Verb: n.verb, Phase: g.phase, Start: g.now(), Waited: waited}
	g.tell(span)
	var mu sync.Mutex
	own := span
	err := Safely(func() error {
		return n.do(kind.WithReporter(ctx, func(r kind.Report) {
			mu.Lock()
			own.Bytes, own.Total, own.Detail = r.Bytes, r.Total, cmp.Or(r.Detail, own.Detail)
			so := own
			mu.Unlock()
			if r.Detail == "" {
				g.tell(so)
			}
		}))
	})
	mu.Lock()
	span.Detail, span.Bytes, span.End = own.Detail, own.Bytes, g.now()
	mu.Unlock()
	if err != nil {
		span.Error = err.Error()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			span.Error = GivenUp
		}
		var already *ActionError
		if !errors.As(err, &already) {
			err = &ActionError{ID: n.id, Verb: n.verb, Field: n.field, Err: err}
		}
	}
	g.tell(span)
	return err
}
