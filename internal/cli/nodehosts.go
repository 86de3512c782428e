package cli

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeHostsAgent is what hostsagent.Unit calls.
func (e *env) nodeHostsAgent() *cobra.Command {
	return &cobra.Command{
		Use: "hosts-agent NAME", Short: "Keep the address of a private API server in " + hostsagent.File, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			changed, err := provision.KeepPrivateHost(c.Context(), h, args[0], func(ctx context.Context) netip.Addr { return azure.AskAgain(ctx).APIServer })
			if changed {
				fmt.Fprintln(e.err, hostsagent.File+" has another address of "+args[0])
			}
			return err
		},
	}
}
