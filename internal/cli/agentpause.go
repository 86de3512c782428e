package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/pause"
	"github.com/berth-dev/berth/internal/report"
)

func (e *env) agentPause() *cobra.Command {
	var d time.Duration
	c := &cobra.Command{
		Use: "pause", Short: "Let the agent's repairs rest for a while", Args: e.noArgs,
		Long: "Let the agent's repairs rest for a while, so that a change by hand stays. What differs is still reported, and\n" +
			"a new document is still applied. The pause ends with its time, with a reboot, or with --for 0s.",
		RunE: func(c *cobra.Command, _ []string) error {
			if d < 0 || d > pause.Longest || !c.Flags().Changed("for") {
				return e.usage(c, fmt.Errorf("--for DURATION must be from 0s to %s", pause.Longest))
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			until, err := pause.Set(h, d)
			switch {
			case err != nil:
				return err
			case d == 0:
				fmt.Fprintln(e.err, "repairs go on")
			default:
				fmt.Fprintf(e.err, "repairs rest until %s\n", report.SystemdTime(until))
			}
			return nil
		},
	}
	c.Flags().DurationVar(&d, "for", 0, "how long they rest, 1h for instance; 0s ends a pause")
	return c
}
