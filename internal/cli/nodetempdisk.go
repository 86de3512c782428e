package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
)

// nodeTempDisk is what tempdisk.Unit calls.
func (e *env) nodeTempDisk() *cobra.Command {
	var stop bool
	c := &cobra.Command{
		Use: "temp-disk", Short: "Mount kubelet's directory from the temporary disk", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			if !stop {
				return provision.OnTempDisk(c.Context(), h)
			}
			said, err := provision.OffTempDisk(c.Context(), h)
			if said != "" {
				fmt.Fprintln(e.err, said)
			}
			return err
		},
	}
	c.Flags().BoolVar(&stop, "stop", false, "give back what the disk has, where nothing uses it")
	return c
}
