package apiserver

import (
	"cmp"
	"context"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// NodeWatcher waits for the milestones of this machine's own Node.
type NodeWatcher struct {
	Host host.Host
	// Node is the Node's name.
	Node string
	// Kubeconfig is kubelet's; it need not exist yet. BootstrapKubeconfig, if
	// set, is asked for a pending certificate request when it does not come.
	Kubeconfig          string
	BootstrapKubeconfig string
	// Unit is kubelet's unit.
	Unit string
	// Healthz is kubelet's health endpoint: http://127.0.0.1:10248/healthz if
	// empty.
	Healthz string
	// OnReach, if set, is told of each milestone as it is reached.
	OnReach func(Milestone, time.Time)
}

// WaitFor waits until a milestone and all before it are reached, or until ctx ends;
// a budget is ctx's deadline. It ends early where kubelet's unit has failed for
// good or keeps crashing. A registered Node counts as a healthy kubelet: health
// endpoints can be switched off. The error is a *MilestoneError; what was reached is
// returned with it.
func (w NodeWatcher) WaitFor(ctx context.Context, until Milestone) (Reached, error) {
	w.Healthz = w.healthz()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := &nodeWait{NodeWatcher: w, changed: make(chan struct{}, 1), boot: bootID(w.Host)}
	var watchers sync.WaitGroup
	watchers.Go(func() { n.guard(ctx, n.watchHealth) })
	watchers.Go(func() { n.guard(ctx, n.watchUnit) })
	if until != MilestoneKubelet {
		watchers.Go(func() { n.guard(ctx, n.watchNode) })
	}
	err := n.wait(ctx, until)
	cancel()
	watchers.Wait()
	return n.reached, err
}

func (w NodeWatcher) healthz() string { return cmp.Or(w.Healthz, "http://127.0.0.1:10248/healthz") }

// guard makes a panic of a watcher the end of the wait.
func (w *nodeWait) guard(ctx context.Context, watch func(context.Context)) {
	if err := converge.Safely(func() error { watch(ctx); return nil }); err != nil {
		w.see(func() { w.broken = err })
	}
}

// nodeWait is one WaitFor on its way. Its watchers write what they see under the
// lock and say that something changed.
type nodeWait struct {
	NodeWatcher
	boot    string
	changed chan struct{}
	// reached belongs to the goroutine of WaitFor.
	reached Reached

	mu sync.Mutex
	// health is the last answer of the health endpoint: nil is healthy.
	healthy bool
	health  error
	// unit is kubelet's unit as last seen; asked that there was an answer, if only
	// an error; lost that the unit is beyond hope.
	unit    host.UnitStatus
	unitErr error
	asked   bool
	lost    Reason
	// node is the Node as last seen; nodeErr why it can't be seen; watching that
	// it would be seen if it were there; first the version of the Node as first seen.
	node     *core.Node
	first    string
	nodeErr  error
	watching bool
	// broken is the panic of a watcher.
	broken error
}

// see changes what is known and wakes the waiter.
func (w *nodeWait) see(change func()) {
	func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		change()
	}()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *nodeWait) wait(ctx context.Context, until Milestone) error {
	for {
		lost, broken := w.update(until)
		if !w.reached.at(until).IsZero() {
			return nil
		}
		if broken != nil {
			return broken
		}
		if lost != "" {
			return w.diagnose(ctx, lost)
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return w.diagnose(ctx, "")
		}
	}
}

// update draws the milestones from what is known.
func (w *nodeWait) update(until Milestone) (lost Reason, broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	registered := w.node != nil && w.ours(w.node)
	if w.healthy || registered {
		w.reach(MilestoneKubelet)
	}
	if registered && until != MilestoneKubelet {
		w.reached.UID = string(w.node.UID)
		w.reach(MilestoneRegistered)
		if w.ready(w.node) {
			w.reach(MilestoneReady)
		}
	}
	return w.lost, w.broken
}

func (w *nodeWait) reach(s Milestone) {
	at := w.reached.at(s)
	if !at.IsZero() {
		return
	}
	*at = w.Host.Now()
	if w.OnReach != nil {
		w.OnReach(s, *at)
	}
}
