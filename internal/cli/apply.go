package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
)

func (e *env) apply() *cobra.Command {
	var f documentFlags
	var fetch bool
	var timeout, within time.Duration
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the machine as a document says", Args: e.noArgs,
		Long: "Make the machine as a document says; what is right already is not touched. With --root nothing of this machine\n" +
			"is changed, and what needs a running machine is left for its first boot. Exit code 4: done, but something that\n" +
			"nobody wants any more was kept, since it is not berth's alone; it is named.\n\n" +
			"A change that restarts what runs well is a trial: where a unit does not stay up, or the node does not stand as\n" +
			"before, the last good configuration is applied again, and the exit code is 1. So it is where the command is told\n" +
			"to stop meanwhile, and at the next boot where the machine goes down. With --confirm-within, somebody must run\n" +
			"berth confirm in that time, too: counted from the first change, also when the command or its terminal is gone.",
		RunE: func(c *cobra.Command, _ []string) error { return e.runApply(c, f, fetch, timeout, within) },
	}
	f.bind(c, "", "")
	e.bindDigests(c)
	e.bindTakeOver(c)
	e.bindNoRevert(c)
	e.bindDrain(c)
	c.Flags().DurationVar(&within, "confirm-within", 0, "go back unless berth confirm is run within this `TIME`, as 5m; a month at most")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `TIME`, as 90s or 10m; without it, never")
	c.Flags().BoolVar(&fetch, "fetch", false, "with --root: download what is missing")
	return c
}

func (e *env) runApply(c *cobra.Command, f documentFlags, fetch bool, timeout, within time.Duration) error {
	if err := f.complete(); err != nil {
		return e.usage(c, err)
	}
	switch {
	case e.drainTimeout <= 0:
		return e.usage(c, fmt.Errorf("--drain-timeout %s: must be above 0", e.drainTimeout))
	case timeout < 0:
		return e.usage(c, fmt.Errorf("--timeout %s: must not be negative", timeout))
	case within < 0:
		return e.usage(c, fmt.Errorf("--confirm-within %s: must not be negative", within))
	case within > longestTrial:
		return e.usage(c, fmt.Errorf("--confirm-within %s: must be at most %s", within, longestTrial))
	case within > 0 && (e.noRevert || f.root != "/"):
		return e.usage(c, errors.New("--confirm-within goes neither with --no-revert nor with --root"))
	}
	ctx, cancel := bounded(c.Context(), timeout)
	defer cancel()
	d, err := e.load(ctx, f)
	if err != nil {
		return provision.WithCause(ctx, err)
	}
	d.parts.fetch, d.parts.within = fetch, within
	p := e.progress()
	d.parts.say = p.Say
	kept, err := provision.Application{
		Host: d.host, ThisMachine: f.root == "/", Command: applyCommand, Version: Version(), Start: e.start,
		BeginJoin: d.parts.inquiry.BeginJoin, Engine: d.parts.engine(d.host, applyCommand, p.Observe), Doing: p.Doing, Say: p.Say,
	}.Run(ctx, d.state)
	if err == nil && kept {
		err = told(exitcode.Kept)
	}
	return err
}

// longestTrial bounds --confirm-within: a change that nobody has confirmed in a month was
// forgotten, and what is reckoned from centuries overflows.
const longestTrial = 31 * 24 * time.Hour

// applyCommand is what the command calls itself where it holds the lock.
const applyCommand = "berth apply"

// bounded is a context that ends after a time; 0 is none.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the time of --timeout %s is over", timeout))
}
