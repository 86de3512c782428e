package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

func (e *env) provisionWait() *cobra.Command {
	return &cobra.Command{
		Use: "provision-wait", Short: "Wait until provisioning has ended and print its result",
		Long: "Wait until provisioning has ended, print provision.json (at most 4,000 bytes) and exit with the provisioning exit code.\n" +
			"The result of an earlier run is none while a run goes on, nor that of an interrupted one while its unit starts it\n" +
			"again or has not started yet in this boot.\n" +
			"It waits for cse_timeout and one minute; then it prints a result that says how far the unit is, and exits with 124.",
		Args: e.publishedArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			code, err := provision.Wait(c.Context(), provision.WaitOptions{
				Host: h, Config: report.ConfigPath, Version: Version(), Out: e.out,
			})
			if err != nil {
				fmt.Fprintf(e.err, "error: print the result: %v\n", err)
			}
			return ending(code)
		},
	}
}

func ending(code int) error {
	if code == 0 {
		return nil
	}
	return told(code)
}
