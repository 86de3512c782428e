package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/rbac"
)

func (e *env) rbac() *cobra.Command {
	var o rbac.Options
	var objects []string
	var direct bool
	c := &cobra.Command{
		Use: "rbac --secret NAME | --object-id GUID", Short: "Print what a cluster needs so that node agents may do their work", Args: e.noArgs,
		Long: "Print what a cluster needs so that node agents may do their work, for kubectl apply: they read Secrets by name, and an\n" +
			"admission policy holds each of them to its own Node and Lease. Nothing is changed. See docs/rbac.md.\n" +
			"With --object-id instead: what a cluster needs so that a machine with that identity of Microsoft Entra ID may become a node.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := manifest(o, objects, direct)
			if err != nil {
				return e.usage(c, err)
			}
			_, err = e.out.Write(text)
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&objects, "object-id", nil, "the Entra identity with the object id `GUID` may become a node; may be repeated")
	f.BoolVar(&direct, "direct", false, "with --object-id: kubelets show the identity's tokens themselves (identity.direct), with the rights of all Nodes")
	f.StringSliceVar(&o.Secrets, "secret", nil, "the Secret `NAME` in kube-system holds what machines become; may be repeated")
	f.StringSliceVar(&o.Others, "token-secret", nil, "agents read the Secret `NAME` too, for a token or a file; may be repeated")
	f.StringVar(&o.Group, "group", rbac.Group, "agents' certificates are of `GROUP`")
	f.StringVar(&o.BootstrapGroup, "bootstrap-group", rbac.BootstrapGroup, "bootstrap tokens are of `GROUP`")
	f.StringVar(&o.Name, "name", rbac.Name, "the objects are called `NAME`: one set for each group")
	return c
}

// manifest is that of agents, or of identities that become nodes.
func manifest(o rbac.Options, objects []string, direct bool) ([]byte, error) {
	if direct && len(objects) == 0 {
		return nil, errors.New("--direct is of an identity: name it with --object-id")
	}
	if len(objects) == 0 {
		return rbac.Manifest(o)
	}
	if len(o.Secrets) > 0 || len(o.Others) > 0 {
		return nil, errors.New("--object-id is for machines that join, --secret for agents: ask for one after the other")
	}
	return rbac.Joining(objects, direct)
}
