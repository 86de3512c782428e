package cli

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/rbac"
)

func (e *env) rbac() *cobra.Command {
	var o rbac.Options
	c := &cobra.Command{
		Use: "rbac --secret NAME", Short: "Print what a cluster needs so that node agents may do their work", Args: e.noArgs,
		Long: "Print what a cluster needs so that node agents may do their work, for kubectl apply: they read Secrets by name, and an\n" +
			"admission policy holds each of them to its own Node and Lease. Nothing is changed. See docs/rbac.md.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := rbac.Manifest(o)
			if err != nil {
				return e.usage(c, err)
			}
			_, err = e.out.Write(text)
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Secrets, "secret", nil, "the Secret `NAME` in kube-system holds what machines become; may be repeated")
	f.StringSliceVar(&o.Others, "token-secret", nil, "agents read the Secret `NAME` too, for a token or a file; may be repeated")
	f.StringVar(&o.Group, "group", rbac.Group, "agents' certificates are of `GROUP`")
	f.StringVar(&o.BootstrapGroup, "bootstrap-group", rbac.BootstrapGroup, "bootstrap tokens are of `GROUP`")
	f.StringVar(&o.Name, "name", rbac.Name, "the objects are called `NAME`: one set for each group")
	return c
}
