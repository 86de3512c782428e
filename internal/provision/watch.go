package provision

import (
	"context"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Watch looks at the node that a state makes of a machine.
type Watch struct{ Host host.Host }

func (w Watch) of(st *desired.State) apiserver.NodeWatcher {
	n := NodeOf(w.Host, st)
	return apiserver.NodeWatcher{
		Host: w.Host, Node: n.Name, Kubeconfig: n.Kubeconfig, BootstrapKubeconfig: n.Bootstrap, Unit: kubelet.Unit, Healthz: n.Healthz,
	}
}

// Await waits for milestones of the node up to one, and tells each it reaches.
func (w Watch) Await(ctx context.Context, st *desired.State, to Milestone, reached func(Milestone)) error {
	n := w.of(st)
	n.OnReach = func(s apiserver.Milestone, _ time.Time) { reached(Milestone(s)) }
	_, err := n.WaitFor(ctx, apiserver.Milestone(to))
	return err
}

// Stands says how the node stands.
func (w Watch) Stands(ctx context.Context, st *desired.State) trial.Standing {
	healthy, ready := w.of(st).Stands(ctx)
	return trial.Standing{Healthy: healthy, Ready: ready}
}

// StandAgain waits until the node stands as before a change.
func (w Watch) StandAgain(ctx context.Context, st *desired.State, before trial.Standing) (remark string, err error) {
	return w.of(st).StandAgain(ctx, before.Healthy, before.Ready)
}
