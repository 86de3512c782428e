package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/report"
)

func (e *env) agentBootstrap() *cobra.Command {
	dir := config.BaseDir
	c := &cobra.Command{
		Use: "bootstrap", Short: "Make the agent a service of this machine", Args: e.noArgs,
		Long: "Make the agent a service of this machine: write, enable and start " + config.Unit + ", which calls this\n" +
			"program where it is now; then disable " + config.InitUnit + " and a cloud-config-downloader.service. It may run\n" +
			"again at any time.",
		RunE: func(c *cobra.Command, _ []string) error { return e.runAgentBootstrap(c, dir) },
	}
	bindConfigDir(c, &dir)
	return c
}

func bindConfigDir(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "config-dir", *dir, "read config-VERSION.yaml in `DIR`: that of this program's version, else the newest")
}

func (e *env) runAgentBootstrap(c *cobra.Command, dir string) error {
	h, err := e.open("/")
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	progress := e.progress()
	opt := e.parts(h).engineOptions(h, "berth agent bootstrap", progress.Observe)
	opt.Trial = nil
	res, err := agent.Bootstrap{
		Host: h, Ledger: &e.ledger, ConfigDir: fromHere(dir), Program: program, Version: Version(), Apply: converge.New(opt).Apply,
	}.Run(c.Context())
	if is[*config.Error](err) {
		return &exitcode.RefusedError{Err: err}
	}
	if err != nil {
		return err
	}
	progress.Say(fmt.Sprintf("%s runs; %s", config.Unit, report.Count(len(res.Plan.Actions), "change")))
	return nil
}
