package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func (e *env) config() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show and make settings", Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(e.configView(), e.fromKubeadm(), e.migrate())
	return c
}

// words are those of a command line that stands in one argument or in several.
func words(args []string) []string {
	return strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "\\\n", " "))
}
