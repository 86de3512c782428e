package cli

import (
	"github.com/spf13/cobra"
)

func (e *env) config() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show and make settings", Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(e.configView(), e.fromKubeadm(), e.migrate())
	return c
}
