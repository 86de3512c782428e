package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// checkHotfix answers a published command that a launcher may call before each
// run and that must never stop it.
func (e *env) checkHotfix() *cobra.Command {
	return &cobra.Command{
		Use: "check-hotfix", Short: "Do nothing: this program is not replaced while it provisions", Hidden: true,
		Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(e.err, "check-hotfix: nothing to check: berth is updated with the image or its package")
			return nil
		},
	}
}

// downloadHotfix answers the published command of that name. Like it, it takes
// no arguments; it installs nothing.
func (e *env) downloadHotfix() *cobra.Command {
	return &cobra.Command{
		Use: "download-hotfix", Short: "Do nothing: this program is not replaced while it provisions", Hidden: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return e.usage(c, fmt.Errorf("download-hotfix takes no arguments"))
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(e.err, "download-hotfix: nothing to install: berth is updated with the image or its package")
			return nil
		},
	}
}
