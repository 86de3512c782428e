package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/bench"
)

func (a *app) bench() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{Use: "bench", Short: "Measure berth against kubeadm join and reset, the shell's downloads, an engine of another day, the agent, fleets of agents, and its limits", Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = os.Stderr
			return runBench(cmd.Context(), o)
		}}
	cmd.Flags().IntVar(&o.Pairs, "pairs", 10, "runs of each side in each case")
	cmd.Flags().IntSliceVar(&o.Agents, "agents", []int{100, 300}, "measure fleets of so many `agents`")
	cmd.Flags().DurationVar(&o.AgentRest, "agent-rest", 0, "how long the agent is measured at rest after the large document; 1m if 0")
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "run only these `parts`: "+strings.Join(bench.Parts(), ", "))
	return cmd
}

func runBench(ctx context.Context, o bench.Options) (err error) {
	if !o.NeedsLab() {
		return bench.All(ctx, nil, o, os.Stdout)
	}
	l, err := lab.Start(ctx, lab.Config{Name: fmt.Sprintf("bench-%d", os.Getpid()), AuditGroup: o.AuditGroup()})
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
	}()
	return bench.All(ctx, l, o, os.Stdout)
}
