package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

type provisionFlags struct {
	config, command, waitFor string
	dryRun, boot             bool
}

func (e *env) provision() *cobra.Command {
	var f provisionFlags
	c := &cobra.Command{
		Use: "provision", Short: "Make this machine the node that a configuration describes",
		Long: "Make this machine the node that an aksnodeconfig.v1 configuration describes, and report the result in\n" +
			report.ResultPath + " and by the exit code. The result of an earlier run is kept beside it as\n" +
			"provision.TIME.json; the newest five of them stay. While another run goes on it waits, for a minute at most, and then\n" +
			"ends with 249; it has touched nothing, and the result is that of the other run.",
		Args: e.publishedArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.runProvision(c, f) },
	}
	c.Flags().StringVar(&f.config, "provision-config", "", "read the configuration from `FILE`")
	c.Flags().StringVar(&f.command, "nbc-cmd", "", "refused, with the code for it: berth does not run the shell script in `FILE`")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan, change nothing and exit with 0")
	c.Flags().StringVar(&f.waitFor, "wait-for", string(provision.MilestoneRegistered), "succeed when this `MILESTONE` is true: kubelet, registered or ready")
	e.bindDigests(c)
	e.bindTakeOver(c)
	e.bindNoRevert(c)
	c.Flags().BoolVar(&f.boot, "boot", false, "started by the unit: keep the result of a run that has ended")
	_ = c.Flags().MarkHidden("boot") // the flag exists
	return c
}

func (e *env) runProvision(c *cobra.Command, f provisionFlags) error {
	milestone, err := provision.ParseMilestone(f.waitFor)
	if err != nil {
		return e.usage(c, fmt.Errorf("--wait-for: %w", err))
	}
	if f.dryRun {
		switch err := provision.RefuseArguments(f.config, f.command); {
		case err != nil && f.command != "":
			return e.explain(err)
		case err != nil:
			return e.usage(c, err)
		}
		return e.dryRun(c.Context(), f.config)
	}
	if e.uid != 0 {
		return e.notRoot()
	}
	h, err := e.open("/")
	if err != nil {
		return err
	}
	p := e.progress()
	o := e.parts(h).options()
	o.Config, o.Boot, o.WaitFor, o.Start = fromHere(f.config), f.boot, milestone, e.start
	o.Command, o.Version, o.Program, o.Observer, o.Say, o.Status = c.CommandPath(), Version(), e.program, p.Observe, p.Say, notifyStatus
	o.Refused = provision.RefuseArguments(f.config, f.command)
	return ending(provision.Provision(c.Context(), o))
}

// dryRun prints the plan. A failure has the code that the run would have.
func (e *env) dryRun(ctx context.Context, config string) error {
	err := e.runPlan(ctx, documentFlags{file: config, root: "/", output: "text"}, true)
	if err != nil {
		return e.explain(err)
	}
	return nil
}

// notRoot tells somebody who may write nothing, not even a result.
func (e *env) notRoot() error {
	return e.explain(&exitcode.Error{
		Number: exitcode.Write, During: "provision", Remedy: "Run it as root.",
		Err: fmt.Errorf("only root can change this machine; this is user %d", e.uid),
	})
}

// explain tells a failure where no result is written, and no log that a hint
// could lead to.
func (e *env) explain(err error) error {
	f := provision.ExplainWithoutLog(err)
	for _, line := range report.Explain(f) {
		fmt.Fprintln(e.err, line)
	}
	return told(f.Code.Number)
}
