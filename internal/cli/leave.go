package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/podnet"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/report"
)

// drainTimeout is how long pods have to go by themselves unless the command line says
// otherwise.
const drainTimeout = 2 * time.Minute

func (e *env) leave() *cobra.Command {
	var owner, kubeconfig string
	var force bool
	var drain time.Duration
	c := &cobra.Command{
		Use: "leave", Short: "Take this machine out of its cluster and give it back as it was", Args: e.noArgs,
		Long: "Take this machine out of its cluster and give it back as it was: the node is cordoned and its pods are evicted, then\n" +
			"kubelet, the pods that are left and the container runtime end, and what berth, kubelet, the runtime and CNI plugins\n" +
			"put on the machine goes. What stood there before is there again; what others changed or mounted since is kept.\n\n" +
			"While pods run that are neither static nor of a DaemonSet, nothing is touched and the exit code is 1, unless --force\n" +
			"is given; nor is it where --kubeconfig is of a cluster in which this machine's name is another machine's. Each thing\n" +
			"that stayed is named, and the exit code is 4 then. A Node can't delete itself: without --kubeconfig it stays in the\n" +
			"cluster. A run that was cut off is continued by the next one; where berth has nothing on the machine, there is\n" +
			"nothing to do.",
		RunE: func(c *cobra.Command, _ []string) error {
			if owner != "" && !desired.Owner(owner).Known() {
				return e.usage(c, fmt.Errorf("--owner %s: must be aks, osc, node or berth", owner))
			}
			if drain < 0 {
				return e.usage(c, fmt.Errorf("--drain-timeout %s: must not be negative", drain))
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			if kubeconfig != "" {
				kubeconfig = fromHere(kubeconfig)
				if err := apiserver.CanOpen(h, kubeconfig); err != nil {
					return err
				}
			}
			p := e.progress()
			o, err := e.leaving(h, p, "berth leave", nil)
			if err != nil {
				return err
			}
			o.Owner, o.Force, o.DrainTimeout, o.Kubeconfig = desired.Owner(owner), force, drain, kubeconfig
			_, err = e.runLeave(c.Context(), p, o)
			return err
		},
	}
	c.Flags().StringVar(&owner, "owner", "", "withdraw only what documents of this `KIND` asked for: aks, osc, node or berth; without it, all")
	c.Flags().BoolVar(&force, "force", false, "leave while pods run: they are evicted, and what is left of them ends")
	c.Flags().DurationVar(&drain, "drain-timeout", drainTimeout, "how long evicted pods have to go, as a `TIME`")
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "delete the Node with the credential in this `FILE`")
	return c
}

// leaving is what leaving needs of the program; the command adds the rest. secret is of
// who registered the machine, where a document that is there still has it.
func (e *env) leaving(h host.Host, p *report.Progress, command string, secret azure.Secret) (join.Options, error) {
	owner, err := agent.LeavesWith(h)
	if err != nil {
		return join.Options{}, err
	}
	opt := e.parts(h).engineOptions(h, command, p.Observe)
	opt.Trial = nil // what is left of the machine can't prove itself
	apply := converge.New(opt).Apply
	return join.Options{
		Host: h, Apply: apply, AgentOwner: owner, AgentThere: func() (bool, error) { return agent.There(h) }, AgentUnit: config.Unit, Command: command, Say: p.Say,
		Unregister: func(ctx context.Context, did func(string)) []error { return azure.New(h).Unregister(ctx, secret, did) },
		Reset:      func(ctx context.Context) ([]string, error) { return agent.Reset(ctx, h, apply) },
		Network:    podnet.Network{Programs: h, Files: h},
		Runtime:    func(ctx context.Context) (join.Runtime, error) { return cri.Open(ctx, paths.ContainerdSocket) },
		Cluster:    func(path string) (join.Cluster, error) { return apiserver.Open(h, path) },
		NodeName: func(path string) (string, error) {
			return identity.NodeName(h, path)
		},
		SameCluster: func(a, b string) (bool, error) {
			return identity.SameCluster(h, a, b)
		},
	}, nil
}

func (e *env) runLeave(ctx context.Context, p *report.Progress, o join.Options) (join.Outcome, error) {
	out, err := join.Leave(ctx, o)
	for _, s := range out.Stayed {
		p.Say("left: " + s)
	}
	switch {
	case err != nil:
		return out, err
	case out.Nothing:
		p.Say("nothing to do: berth has nothing on this machine")
	case len(out.Stayed) > 0:
		return out, told(exitcode.Kept)
	default:
		p.Say("the machine is as it was")
	}
	return out, nil
}
