package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
)

func (e *env) status() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "status", Short: "Print how this machine stands: the run that goes on, the last result, units", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(output, "text", "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			s, err := provision.Stand(c.Context(), h, Version())
			if err != nil {
				return err
			}
			if output == "text" {
				_, err = fmt.Fprint(e.out, s.Text())
				return err
			}
			return encode(e.out, output, s)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	return c
}
