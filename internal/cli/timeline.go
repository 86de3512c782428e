package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

func (e *env) timeline() *cobra.Command {
	var root, output string
	c := &cobra.Command{
		Use: "timeline", Short: "Print when each action of the last run started and ended", Args: e.noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(output, "text", "json", "svg"); err != nil {
				return e.usage(c, err)
			}
			if err := absoluteRoot(&root); err != nil {
				return e.usage(c, err)
			}
			h, err := e.open(root)
			if err != nil {
				return err
			}
			t, underway, err := provision.LastTimeline(h)
			for _, run := range underway {
				fmt.Fprintln(e.err, run)
			}
			if err != nil {
				return err
			}
			return e.writeTimeline(t, output)
		},
	}
	c.Flags().StringVar(&root, "root", "/", "read that of the machine whose root is `DIR`")
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or svg")
	return c
}

func (e *env) writeTimeline(t *report.Timeline, output string) error {
	switch output {
	case "svg":
		return t.WriteSVG(e.out)
	case "json":
		return encode(e.out, "json", t)
	}
	return t.WriteText(e.out, e.width)
}
