package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/join"
)

// upgradeDrain is how long pods have to go before another kubelet starts, unless somebody
// says otherwise.
const upgradeDrain = 5 * time.Minute

// bindDrain are the flags of commands that may start another kubelet.
func (e *env) bindDrain(c *cobra.Command) {
	c.Flags().BoolVar(&e.drain, "drain", false, "drain the node before another version of kubelet starts; it takes pods again afterwards")
	c.Flags().DurationVar(&e.drainTimeout, "drain-timeout", upgradeDrain, "with --drain: how long pods have to go, as a `TIME`; then nothing is changed")
}

// drains is how long pods have to go; 0 where the command line does not ask them to.
func (e *env) drains() time.Duration {
	if !e.drain {
		return 0
	}
	return e.drainTimeout
}

// drainer empties the node before another kubelet starts, where that is asked for. What
// neither applies a document nor ends a trial, as leaving, gives no node back.
func (p *parts) drainer() converge.Drainer {
	if p.document == nil && !p.ending {
		return nil
	}
	program, _ := os.Executable() // what runs has a path; only a broken /proc hides it
	return &join.Drain{
		Host: p.host, Wanted: p.drains > 0, Timeout: p.drains, Say: p.say, Program: program,
		Fits: func(ctx context.Context) error {
			return join.Fits(p.kubelet, p.drains > 0, func() join.Peers { return p.nodePeers(ctx) })
		},
		NodeName: func(path string) (string, error) { return identity.NodeName(p.host, path) },
		Cluster:  func(path string) (join.DrainCluster, error) { return apiserver.Open(p.host, path) },
	}
}

// nodePeers asks as the node that the machine is for versions, its Node's and the API
// server's, where the document is of the same cluster.
func (p *parts) nodePeers(ctx context.Context) (out join.Peers) {
	name, err := identity.NodeName(p.host, p.kubeconfig())
	if err != nil || name == "" {
		return out
	}
	if c, err := p.asNodeOf(p.server); err == nil {
		defer c.Close()
		ask(ctx, c, name, &out)
	}
	return out
}

// ask asks the API server for its version and for a Node.
func ask(ctx context.Context, c *apiserver.Client, name string, out *join.Peers) {
	out.Server, _ = c.ServerVersion(ctx)
	n, err := c.GetNode(ctx, name)
	if err != nil {
		return
	}
	out.Kubelet, out.Unschedulable = n.Status.NodeInfo.KubeletVersion, n.Spec.Unschedulable
	if out.Pods, err = c.ListPods(ctx, name); err != nil {
		out.Unschedulable = false // nobody knows whether it is drained
	}
}
