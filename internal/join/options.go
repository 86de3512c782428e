package join

import (
	"context"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/podnet"
)

// Options are what leaving needs. Those without a remark are required.
type Options struct {
	Host host.Host
	// Owner is whose document is withdrawn; "" for all.
	Owner desired.Owner
	// Force ends pods that run.
	Force bool
	// DrainTimeout is how long pods have to go by themselves.
	DrainTimeout time.Duration
	// Kubeconfig is of somebody who may delete the Node; "" for nobody.
	Kubeconfig string
	// Apply brings the machine to a state.
	Apply func(context.Context, *desired.State) (*converge.Result, error)
	// Reset takes the agent away, with its documents.
	Reset func(context.Context) (kept []string, err error)
	// AgentOwner is whose the agent's documents are.
	AgentOwner desired.Owner
	// AgentThere says whether the agent is on the machine, also without a document.
	AgentThere func() (bool, error)
	// AgentUnit is the service that would repair what goes.
	AgentUnit string
	// Keep are directories whose content stays, filled by whom it may be; nil for none.
	Keep []string
	// Network takes away what pods had of it, and Foreign names what the cluster's own
	// network left: neither speaks of what was there before.
	Network interface {
		Remove(ctx context.Context, before podnet.Before) (removed []string, err error)
		Foreign(ctx context.Context, before podnet.Before) (left []string, err error)
	}
	// Runtime connects to the container runtime.
	Runtime func(context.Context) (Runtime, error)
	// Cluster connects to the API server of a kubeconfig.
	Cluster func(kubeconfig string) (Cluster, error)
	// SameCluster says whether two kubeconfigs are of one cluster.
	SameCluster func(a, b string) (bool, error)
	// NodeName is as what the owner of a kubeconfig has registered; "" if it is no node.
	NodeName func(kubeconfig string) (string, error)
	// Unregister takes back what was made in Azure for the machine, and says what stayed;
	// nil where that can't be anything.
	Unregister func(ctx context.Context, did func(line string)) (stayed []error)
	// Command names the command for the lock.
	Command string
	// Say tells of each thing that was done.
	Say func(line string)
}

// Runtime is the container runtime as far as it is needed here.
type Runtime interface {
	Sandboxes(ctx context.Context) ([]cri.Sandbox, error)
	Remove(ctx context.Context, id string, grace time.Duration) error
	Close()
}

// Cluster is the API server as far as it is needed here.
type Cluster interface {
	ListPods(ctx context.Context, node string) ([]core.Pod, error)
	Evict(ctx context.Context, p *core.Pod) error
	PatchNode(ctx context.Context, name string, patch []byte) (*core.Node, error)
	GetNode(ctx context.Context, name string) (*core.Node, error)
	DeleteNode(ctx context.Context, name, uid string) error
	Close()
}

// Outcome is what came of it.
type Outcome struct {
	// Nothing: berth has nothing on this machine.
	Nothing bool
	// Stayed is what is not as it was before berth, and why, each in one line.
	Stayed []string
	// InAzure: something that berth made is in Azure still.
	InAzure bool
}
