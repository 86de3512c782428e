package cli

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/approver"
	"github.com/berth-dev/berth/internal/agent/rbac"
)

func (e *env) approver() *cobra.Command {
	var r approver.Rule
	var kubeconfig string
	c := &cobra.Command{
		Use: "approver --kubeconfig FILE --machine PATTERN", Short: "Approve the certificate requests of node agents", Args: e.noArgs,
		Long: "Approve the certificate requests of node agents, in clusters where nobody else does, until it is told to end. A request is\n" +
			"approved if it is as an agent makes it, for a machine that fits a pattern, and was sent by that agent or, while the machine\n" +
			"has no Node, by a bootstrap token. All others are left, with an event that says why. See docs/approver.md.",
		RunE: func(c *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return e.usage(c, errors.New("--kubeconfig is missing"))
			}
			if err := r.Validate(); err != nil {
				return e.usage(c, err)
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			return approver.Serve(c.Context(), h, fromHere(kubeconfig), r, slog.New(slog.NewTextHandler(e.err, nil)))
		},
	}
	f := c.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "the cluster, and who is asking it, stand in `FILE`")
	f.StringSliceVar(&r.Machines, "machine", nil, "machines whose names fit `PATTERN` may join: pool-a-*, and * is all; may be repeated")
	f.StringVar(&r.Group, "group", rbac.Group, "certificates are for `GROUP`")
	f.StringVar(&r.BootstrapGroup, "bootstrap-group", rbac.BootstrapGroup, "bootstrap tokens are of `GROUP`")
	return c
}
