package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/doctor"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
)

func (e *env) flexPreflight() *cobra.Command {
	var file, output, ignore string
	var strict bool
	c := &cobra.Command{
		Use: "preflight --config FILE", Short: "Find out what keeps this machine from being a node", Args: e.noArgs,
		Long: "Find out what keeps this machine from being the node that a configuration of AKS Flex Node asks for. Nothing is changed.\n" +
			"Exit code 0: nothing, as far as it can be known; 1: an error, or a warning with --fail-on-warnings.",
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := doctor.IgnoredAsPublished(ignore)
			if err != nil {
				err = fmt.Errorf("--ignore-preflight-errors %w", err)
			}
			if err == nil && file == "" {
				err = errors.New("--config FILE is missing")
			}
			if err == nil {
				err = oneOf(output, "text", "json")
			}
			if err != nil {
				return e.usage(c, err)
			}
			return e.runFlexPreflight(c, file, output, names, strict)
		},
	}
	c.Flags().StringVar(&file, "config", "", "read the configuration from `FILE`")
	c.Flags().StringVar(&output, "output", "text", "print as `FORMAT`: text or json")
	c.Flags().StringVar(&ignore, "ignore-preflight-errors", "", "what the checks `NAMES` find does not count: names with commas between, or all")
	c.Flags().BoolVar(&strict, "fail-on-warnings", false, "a warning is no success, either")
	return c
}

func (e *env) runFlexPreflight(c *cobra.Command, file, output string, ignore []string, strict bool) error {
	published, err := provision.ReadDocument(c.Context(), file)
	if err != nil {
		return err
	}
	doc, notes, err := node.FromFlex(published, node.SecretLocation{Inline: true})
	if err != nil {
		return &exitcode.RefusedError{Err: err}
	}
	for _, n := range notes {
		fmt.Fprintf(e.err, "%s: %s\n", n.Path, n.Reason)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	r, err := e.examine(c.Context(), text, ignore)
	if err != nil {
		return err
	}
	if output == "text" {
		err = r.Write(e.out)
	} else {
		err = encode(e.out, output, doctor.AsPublished(r))
	}
	if err == nil && (r.Summary.Errors > 0 || strict && r.Summary.Warnings > 0) {
		err = told(exitcode.Failed)
	}
	return err
}
