package cli

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
)

func (e *env) agentReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset", Short: "Take the agent from this machine, with all that it put there", Args: e.noArgs,
		Long: "Take the agent from this machine, with all that it put there: its unit, its certificate, its token files, and what\n" +
			"its documents asked for. What was there before is there again; what others changed since is kept and named. The\n" +
			"disk of kubelet's data is unmounted and keeps them, unless kubelet runs. The agent's configuration is somebody\n" +
			"else's and stays.",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			p := newProgress(e)
			opt := e.parts(h).engineOptions(h, "berth agent reset", p.observe)
			kept, err := agent.Reset(c.Context(), h, converge.New(opt).Apply)
			if err != nil {
				return err
			}
			for _, k := range kept {
				p.say("kept: " + k)
			}
			if len(kept) > 0 {
				return told(exitcode.Kept)
			}
			p.say("the agent is gone")
			return nil
		},
	}
}
