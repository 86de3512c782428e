package cli

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/join"
)

func (e *env) agentReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset", Short: "Take the agent from this machine, with all that it put there", Args: e.noArgs,
		Long: "Take the agent from this machine, with all that it put there: its unit, its certificate, its token files, and what\n" +
			"its documents asked for. Where kubelet goes with them, the pods that run end, and what kubelet, the container\n" +
			"runtime and CNI plugins left goes; the Node stays in the cluster. berth leave evicts pods, and can delete it.\n" +
			"What was there before is there again; what others changed since is kept and named. The disk of kubelet's data\n" +
			"is unmounted and keeps them, unless kubelet runs. The agent's configuration is somebody else's and stays.",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			p := e.progress()
			o, err := e.leaving(h, p, "berth agent reset", nil)
			if err != nil {
				return err
			}
			documents, err := agent.DocumentsOwner(h)
			if err != nil {
				return err
			}
			if o.Keep, err = agent.KeptByReset(h); err != nil {
				return err
			}
			kept, err := join.TakeAgent(c.Context(), o, documents, desired.OwnerBerth)
			for _, k := range kept {
				p.Say("kept: " + k)
			}
			if err != nil {
				return err
			}
			if len(kept) > 0 {
				return told(exitcode.Kept)
			}
			p.Say("the agent is gone")
			return nil
		},
	}
}
