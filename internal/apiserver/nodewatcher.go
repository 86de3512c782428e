package apiserver

import (
	"context"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// NodeWatcher waits for the stages of this machine's own Node.
type NodeWatcher struct {
	Host host.Host
	// Node is the Node's name.
	Node string
	// Kubeconfig is kubelet's; it need not exist yet. BootstrapKubeconfig, if
	// set, is asked for a pending certificate request when it does not come.
	Kubeconfig          string
	BootstrapKubeconfig string
	// Unit is kubelet's unit: kubelet.service if empty.
	Unit string
	// Healthz is kubelet's health endpoint: http://127.0.0.1:10248/healthz if
	// empty.
	Healthz string
	// OnReach, if set, is told of each stage as it is reached.
	OnReach func(NodeStage, time.Time)
}

// WaitFor waits until a stage and all before it are reached, or until ctx ends;
// a budget is ctx's deadline. It ends early where kubelet's unit has failed for
// good or keeps crashing. A registered Node counts as a healthy kubelet: health
// endpoints can be switched off. The error is a *StageError; what was reached is
// returned with it.
func (w NodeWatcher) WaitFor(ctx context.Context, until NodeStage) (Reached, error) {
	if w.Unit == "" {
		w.Unit = "kubelet.service"
	}
	if w.Healthz == "" {
		w.Healthz = "http://127.0.0.1:10248/healthz"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &vigil{NodeWatcher: w, changed: make(chan struct{}, 1), boot: bootID(w.Host)}
	var watchers sync.WaitGroup
	watchers.Go(func() { v.guard(ctx, v.watchHealth) })
	watchers.Go(func() { v.guard(ctx, v.watchUnit) })
	if until != StageKubelet {
		watchers.Go(func() { v.guard(ctx, v.watchNode) })
	}
	err := v.wait(ctx, until)
	cancel()
	watchers.Wait()
	return v.reached, err
}

// guard makes a panic of a watcher the end of the wait.
func (v *vigil) guard(ctx context.Context, watch func(context.Context)) {
	if err := converge.Safely(func() error { watch(ctx); return nil }); err != nil {
		v.see(func() { v.broken = err })
	}
}

// vigil is one WaitFor on its way. Its watchers write what they see under the
// lock and say that something changed.
type vigil struct {
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
	// an error; lost the verdict that the unit is beyond hope.
	unit    host.UnitStatus
	unitErr error
	asked   bool
	lost    Code
	// node is the Node as last seen; nodeErr why it can't be seen; watching that
	// it would be seen if it were there.
	node     *core.Node
	nodeErr  error
	watching bool
	// broken is the panic of a watcher.
	broken error
}

// see changes what is known and wakes the waiter.
func (v *vigil) see(change func()) {
	func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		change()
	}()
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

func (v *vigil) wait(ctx context.Context, until NodeStage) error {
	for {
		lost, broken := v.update(until)
		if !v.reached.at(until).IsZero() {
			return nil
		}
		if broken != nil {
			return broken
		}
		if lost != "" {
			return v.diagnose(ctx, lost)
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return v.diagnose(ctx, "")
		}
	}
}

// update draws the stages from what is known.
func (v *vigil) update(until NodeStage) (lost Code, broken error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	registered := v.node != nil && v.ours(v.node)
	if v.healthy || registered {
		v.reach(StageKubelet)
	}
	if registered && until != StageKubelet {
		v.reached.UID = string(v.node.UID)
		v.reach(StageRegistered)
		if v.ready(v.node) {
			v.reach(StageReady)
		}
	}
	return v.lost, v.broken
}

func (v *vigil) reach(s NodeStage) {
	at := v.reached.at(s)
	if !at.IsZero() {
		return
	}
	*at = v.Host.Now()
	if v.OnReach != nil {
		v.OnReach(s, *at)
	}
}
