package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/provision"
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
			return join.Fits(p.kubelet, p.drains > 0, func() join.Peers { return p.peers().OfNode(ctx, p.server) })
		},
		NodeName: func(path string) (string, error) { return identity.NodeName(p.host, path) },
		Cluster:  func(path string) (join.DrainCluster, error) { return apiserver.Open(p.host, path) },
	}
}

// peers asks the cluster that a machine is of, or is to join.
func (p *parts) peers() join.PeerSource {
	return join.PeerSource{Host: p.host, Kubeconfig: func() string { return provision.KubeconfigInUse(p.host) }, Tokens: azure.New(p.host).Bootstrap}
}
