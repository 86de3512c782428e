package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// node holds the verbs that berth's own units call.
func (e *env) node() *cobra.Command {
	c := &cobra.Command{Use: "node", Short: "Verbs for berth's own units", Hidden: true, Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(e.nodeResult(), e.nodeRestore(), e.nodeRevert(), e.nodeUncordon(), e.nodeFirewall(), e.nodeSwap(), e.nodeLocalDNS(), e.nodeGPU(), e.nodeTempDisk(), e.nodeRealmJoin(), e.nodeHostsAgent(), e.nodeCloudCA(), e.nodePasswordAge(), e.token())
	return c
}

func (e *env) nodeResult() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use: "result", Short: "Write the result of a run that was killed", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			said, err := provision.ResultIfMissing(c.Context(), h, config, Version(), provision.Ending{
				ServiceResult: os.Getenv("SERVICE_RESULT"), ExitCode: os.Getenv("EXIT_CODE"), ExitStatus: os.Getenv("EXIT_STATUS"),
			})
			if said != "" {
				fmt.Fprintln(e.err, said)
			}
			return err
		},
	}
	c.Flags().StringVar(&config, "provision-config", report.ConfigPath, "the `FILE` that the run reads")
	return c
}

// nodeRestore is what trial.RestoreUnit calls at boot.
func (e *env) nodeRestore() *cobra.Command {
	return &cobra.Command{
		Use: "restore", Short: "Go back to the last good configuration at boot", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.goBack(c, "restore", restore) },
	}
}

// nodeRevert is what trial.RevertTimer calls when the time is over.
func (e *env) nodeRevert() *cobra.Command {
	return &cobra.Command{
		Use: "revert", Short: "Go back to the last good configuration", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.goBack(c, "revert", e.revert) },
	}
}

// nodeUncordon is what drained.Timer calls when a restart of the machine took a change back.
func (e *env) nodeUncordon() *cobra.Command {
	return &cobra.Command{
		Use: "uncordon", Short: "Have the node take pods again", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.goBack(c, "uncordon", func(ctx context.Context, engine *converge.Engine) (string, error) { return "", engine.EndDrain(ctx) })
		},
	}
}

func restore(ctx context.Context, engine *converge.Engine) (string, error) {
	return engine.Restore(ctx)
}

func (e *env) revert(ctx context.Context, engine *converge.Engine) (string, error) {
	h, err := e.open("/")
	if err != nil {
		return "", err
	}
	return selfupdate.Revert(ctx, h, engine, func(err error) { fmt.Fprintln(e.err, "look at the agent on trial:", err) })
}

func (e *env) goBack(c *cobra.Command, verb string, back func(context.Context, *converge.Engine) (string, error)) error {
	h, err := e.open("/")
	if err != nil {
		return err
	}
	p, parts := e.progress(), e.parts(h)
	parts.ending, parts.say = true, p.Say
	done, err := back(c.Context(), parts.engine(h, "berth node "+verb, p.Observe))
	if done == "" || err != nil {
		return err
	}
	p.Say(done)
	return nil
}

func (e *env) nodeFirewall() *cobra.Command {
	var program string
	c := &cobra.Command{
		Use: "firewall", Short: "Put the packet filter in force", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			if err := provision.RestorePacketFilter(c.Context(), h); err != nil || program == "" {
				return err
			}
			if err := provision.AcceptForwarded(c.Context(), h, program); err != nil {
				fmt.Fprintln(e.err, "the chain FORWARD of iptables stays as it is, and may drop what pods send:", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&program, "iptables", "", "the `FILE` of iptables, whose chain FORWARD is to accept what no rule decides")
	return c
}

func (e *env) nodeSwap() *cobra.Command {
	return &cobra.Command{
		Use: "swap", Short: "Make the swap file where it is missing", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			return provision.RestoreSwap(c.Context(), h)
		},
	}
}
