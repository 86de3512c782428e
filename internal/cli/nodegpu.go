package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/nodegpu"
)

// nodeGPU is what gpu.Unit calls. It ends with a number of the registry, which tells
// whoever started the unit what failed.
func (e *env) nodeGPU() *cobra.Command {
	return &cobra.Command{
		Use: "gpu", Short: "Make the machine's GPUs ready", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			err = nodegpu.Prepare(c.Context(), h, func(text string) { fmt.Fprintln(e.err, text) })
			if n := exitcode.Known(err); n != 0 {
				e.exit(err)
				return told(n)
			}
			return err
		},
	}
}
