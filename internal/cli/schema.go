package cli

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

func (e *env) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a NodeConfig", Args: e.noArgs,
		Long: "Print the JSON Schema of a NodeConfig, for editors. What depends on two fields, or on the machine, only berth refuses.",
		RunE: func(*cobra.Command, []string) error {
			_, err := e.out.Write(v1alpha1.Schema)
			return err
		},
	}
}
