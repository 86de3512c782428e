package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (e *env) confirm() *cobra.Command {
	return &cobra.Command{
		Use: "confirm", Short: "Confirm the change that apply --confirm-within has made", Args: e.noArgs,
		Long: "Confirm the change that apply --confirm-within has made. Without it the last good configuration comes back when\n" +
			"the time is over, or when the machine restarts. A node that was drained for the change takes pods again then.",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			p := e.parts(h)
			p.ending, p.say = true, func(line string) { fmt.Fprintln(e.err, line) }
			owner, err := p.engine(h, "berth confirm", nil).Confirm(c.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(e.err, "confirmed: the change of the %s configuration stays\n", owner)
			return nil
		},
	}
}
