package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/provision"
)

// flexConfig is where AKS Flex Node has its configuration unless --config names it.
const flexConfig = "/etc/aks-flex-node/config.json"

// bootstrap is join under the name of AKS Flex Node, of its configuration.
func (e *env) bootstrap() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "bootstrap", Aliases: []string{"start"}, Short: "Make this machine a node of the cluster that a configuration names", Args: e.noArgs,
		Long: "Make this machine a node of the cluster that a configuration of AKS Flex Node names, in its first shape or the present\n" +
			"one, and wait until the cluster calls it Ready: berth join of what berth config migrate makes of it. What has no place\n" +
			"there is told by its path, and is not in force. A second run changes nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			if e.uid != 0 {
				return e.notRootFor("make this machine a node")
			}
			o, err := e.joining(file, true)
			if err != nil {
				return err
			}
			o.WaitFor, o.Timeout = provision.MilestoneReady, joinTimeout
			return e.joined(c.Context(), "text", o)
		},
	}
	c.Flags().StringVar(&file, "config", flexConfig, "read the configuration, JSON, from `FILE`")
	return c
}

// unbootstrap is leave under the name of AKS Flex Node: it asks nothing, and what could
// not be taken away is told and is no failure.
func (e *env) unbootstrap() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "unbootstrap", Aliases: []string{"reset"}, Short: "Take this machine out of its cluster and give it back as it was", Args: e.noArgs,
		Long: "Take this machine out of its cluster and give it back as it was: berth leave --force. The configuration is\n" +
			"needed only where its service principal registered the machine with Azure Arc: its secret is kept nowhere else.\n\n" +
			"As with the published program, what stays, the Node in the cluster first of all, is named, and the exit code is 0;\n" +
			"where something is in Azure still that bootstrap made there, it is 4.",
		RunE: func(c *cobra.Command, _ []string) error {
			if e.uid != 0 {
				return e.notRootFor("take this machine out of its cluster")
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			p := e.progress()
			o, err := e.leaving(h, p, "berth leave", func() (*desired.AzureIdentity, error) { return join.FlexRegistrar(h, fromHere(file)) })
			if err != nil {
				return err
			}
			o.Force, o.DrainTimeout = true, drainTimeout
			out, err := e.runLeave(c.Context(), p, o)
			return unlessKept(out, err)
		},
	}
	c.Flags().StringVar(&file, "config", flexConfig, "the configuration, JSON, is in `FILE`; read for the secret of its service principal alone")
	return c
}

// unlessKept takes exit code 4, of which the published program knows nothing, for done:
// only what is in Azure still goes on without anybody who knows of it.
func unlessKept(out join.Outcome, err error) error {
	if code, ok := errors.AsType[told](err); ok && code == exitcode.Kept && !out.InAzure {
		return nil
	}
	return err
}
