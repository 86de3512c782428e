package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeRealmJoin is what searchdomain.Unit calls.
func (e *env) nodeRealmJoin() *cobra.Command {
	return &cobra.Command{
		Use: "realm-join REALM", Short: "Enter a domain, unless the machine is in it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			said, err := provision.EnterRealm(c.Context(), h, args[0], os.Getenv(searchdomain.UserVariable))
			if said != "" {
				fmt.Fprintln(e.err, said)
			}
			return err
		},
	}
}
