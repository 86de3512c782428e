package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/artifact"
)

func (e *env) bundle() *cobra.Command {
	c := &cobra.Command{
		Use: "bundle", Short: "Make, show and verify the one file for a site without network", Args: cobra.ArbitraryArgs,
		Long: "A bundle is one file with archives, programs and container images, a manifest and a signature. On a machine it\n" +
			"goes into " + artifact.BundleDir + "/, with the name *.bundle: what it has is not fetched. Its commands are create,\n" +
			"inspect and verify; docs/bundle.md describes the format.",
		RunE: e.noCommand,
	}
	c.AddCommand(e.bundleCreate(), e.bundleInspect(), e.bundleVerify())
	return c
}

// oneFile refuses all but one argument.
func (e *env) oneFile(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return e.usage(c, fmt.Errorf("%s wants one FILE, and has %d", c.CommandPath(), len(args)))
}
