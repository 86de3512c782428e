package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// planned is what plan prints as JSON. Its keys are part of the interface.
type planned struct {
	*converge.Plan
	Unused    []desired.FieldNote `json:"unused"`
	Unhandled []string            `json:"unhandled"`
}

func (e *env) plan() *cobra.Command {
	var f documentFlags
	c := &cobra.Command{
		Use: "plan -f FILE", Short: "Print what apply would change, why, and what it disrupts", Args: e.noArgs,
		Long: "Print what apply would change, why, and what it disrupts. Nothing is changed.\n" +
			"Exit code 0: the machine is as the document says; 2: changes are pending; 1: what is marked\n" +
			"as blocked can't be done, and apply would refuse.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(f.output, "text", "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			if err := f.complete(); err != nil {
				return e.usage(c, err)
			}
			return e.runPlan(c.Context(), f, false)
		},
	}
	f.bind(c, "text", "print as `FORMAT`: text, json or yaml")
	e.bindTakeOver(c)
	return c
}

// runPlan prints a plan; dry tells that it is that of provision, to which pending
// changes are no exit code.
func (e *env) runPlan(ctx context.Context, f documentFlags, dry bool) error {
	d, err := e.load(ctx, f)
	if err == nil && dry {
		err = provision.Takes(d.contract.Kind())
	}
	if err != nil {
		return err
	}
	p, blocked := d.parts.engine(d.host, "plan", nil).Plan(ctx, d.state)
	if p == nil {
		return blocked
	}
	if f.output == "text" {
		err = report.WritePlan(e.out, p, d.unused(), d.state.Unhandled)
	} else {
		err = encode(e.out, f.output, planned{p, d.unused(), nonNil(d.state.Unhandled)})
	}
	if err != nil || blocked != nil || dry || p.Empty() {
		return cmp.Or(err, blocked)
	}
	return told(exitcode.Pending)
}
