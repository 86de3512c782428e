package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/lab"
)

func (a *app) prepare() *cobra.Command {
	return &cobra.Command{Use: "prepare", Short: "Install and build what labs need, with progress, and start nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return lab.Prepare(cmd.Context(), lab.Config{Name: a.name})
		}}
}
