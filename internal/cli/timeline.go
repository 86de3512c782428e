package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/host"
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
			t, err := report.LoadTimeline(h, report.TimelinePath)
			e.tellUnderway(h)
			if errors.Is(err, fs.ErrNotExist) {
				return noTimeline(h)
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

// tellUnderway tells of a run whose timeline is not there yet.
func (e *env) tellUnderway(h host.Host) {
	for _, run := range []struct {
		does string
		find func(host.Host) (provision.Progress, bool)
	}{{"provisioning", provision.Underway}, {"applying", provision.Applying}} {
		if p, ok := run.find(h); ok {
			fmt.Fprintf(e.err, "%s %s; the timeline is that of the run before\n", run.does, p)
		}
	}
}

// noTimeline says what is known of a run whose timeline is gone.
func noTimeline(h host.Host) error {
	last, err := provision.LastResult(h)
	if err != nil {
		return err
	}
	return fmt.Errorf("there is no timeline (%s); of provisioning: %s", report.TimelinePath, last)
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
