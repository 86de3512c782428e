package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeCloudCA is what cloudca.Unit calls.
func (e *env) nodeCloudCA() *cobra.Command {
	return &cobra.Command{
		Use: "cloud-ca", Short: "Trust the certificate authorities of this machine's cloud as they are now", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			engine := func(document []byte, facts component.Facts, note converge.Observer) *converge.Engine {
				p := e.parts(h)
				p.document, p.gathered, p.noRevert, p.yields = document, facts, true, true
				shown := e.progress().Observe
				return p.engine(h, "berth node cloud-ca", func(s converge.Span) { shown(s); note(s) })
			}
			said, err := provision.CloudCAs{Ask: azure.CloudCAs, Engine: engine}.Renew(c.Context(), h)
			if said != "" {
				fmt.Fprintln(e.err, said)
			}
			return err
		},
	}
}
