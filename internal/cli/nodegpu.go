package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/component/gpu"
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
			text, err := h.ReadFile(gpu.SettingsFile)
			if err != nil {
				return fmt.Errorf("read GPU settings: %w", err)
			}
			s, err := gpu.Read(text)
			if err != nil {
				return err
			}
			err = nodegpu.Node{Host: h, Settings: s, Say: func(text string) { fmt.Fprintln(e.err, text) }}.Prepare(c.Context())
			if n := exitcode.Known(err); n != 0 {
				e.exit(err)
				return told(n)
			}
			return err
		},
	}
}
