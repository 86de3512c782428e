package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// node holds the verbs that berth's own units call.
func (e *env) node() *cobra.Command {
	c := &cobra.Command{Use: "node", Short: "Verbs for berth's own units", Hidden: true, Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(e.nodeResult())
	return c
}

func (e *env) nodeResult() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use: "result", Short: "Write the result of a run that was killed", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			said, err := provision.ResultIfMissing(c.Context(), h, config, Version(), provision.Ending{
				ServiceResult: os.Getenv("SERVICE_RESULT"), ExitCode: os.Getenv("EXIT_CODE"), ExitStatus: os.Getenv("EXIT_STATUS"),
			})
			if said != "" {
				fmt.Fprintln(e.err, said)
			}
			return err
		},
	}
	c.Flags().StringVar(&config, "provision-config", report.ConfigPath, "the `FILE` that the run reads")
	return c
}
