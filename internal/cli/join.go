package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// joinCommand is what the command calls itself where it holds a lock.
const joinCommand = "berth join"

// joinTimeout is how long a join may take unless the command line says otherwise: as
// long as the slowest of its parts, the API server's answer, three times.
const joinTimeout = 15 * time.Minute

type joinFlags struct {
	file, output, waitFor string
	timeout               time.Duration
}

func (e *env) join() *cobra.Command {
	var f joinFlags
	c := &cobra.Command{
		Use: "join -f FILE", Short: "Make this machine a node of the cluster that a NodeConfig names", Args: e.noArgs,
		Long: "Make this machine a node of the cluster that a NodeConfig names, and wait until the cluster calls it Ready. What is\n" +
			"right already is not touched: a second run changes nothing, and needs no token any more. A run that was cut off is\n" +
			"continued by the next one; berth leave gives the machine back as it was.\n\n" +
			"A document that has changed since changes the node. What restarts programs that run well is a trial: the programs\n" +
			"are fetched before anything stops, and where the node is not Ready as before, the last good document is applied\n" +
			"again, and the exit code is 1. With --drain the node's pods go elsewhere before another version of kubelet starts.\n" +
			"Exit code 4: done, but something that nobody wants any more was kept; it is named.\n\n" +
			"The result stands in " + report.JoinPath + ", and berth status tells of it.",
		RunE: func(c *cobra.Command, _ []string) error { return e.runJoin(c, f) },
	}
	c.Flags().StringVarP(&f.file, "filename", "f", "", "read the NodeConfig from `FILE`; - is standard input")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "print the result as `FORMAT`: text, json or yaml")
	c.Flags().StringVar(&f.waitFor, "wait-for", string(provision.MilestoneReady), "succeed when this `MILESTONE` is true: kubelet, registered or ready")
	c.Flags().DurationVar(&f.timeout, "timeout", joinTimeout, "give up after this `TIME`, as 90s or 10m; 0 is never")
	e.bindDigests(c)
	e.bindTakeOver(c)
	e.bindNoRevert(c)
	e.bindDrain(c)
	return c
}

func (e *env) runJoin(c *cobra.Command, f joinFlags) error {
	milestone, err := provision.ParseMilestone(f.waitFor)
	switch {
	case f.file == "":
		return e.usage(c, errors.New("-f FILE is missing"))
	case err != nil:
		return e.usage(c, fmt.Errorf("--wait-for: %w", err))
	case e.drainTimeout <= 0:
		return e.usage(c, fmt.Errorf("--drain-timeout %s: must be above 0", e.drainTimeout))
	case f.timeout < 0:
		return e.usage(c, fmt.Errorf("--timeout %s: must not be negative", f.timeout))
	}
	if err := oneOf(f.output, "text", "json", "yaml"); err != nil {
		return e.usage(c, err)
	}
	if e.uid != 0 {
		return e.notRootFor("make this machine a node")
	}
	o, err := e.joining(f.file, false)
	if err != nil {
		return err
	}
	o.WaitFor, o.Timeout = milestone, f.timeout
	return e.joined(c.Context(), f.output, o)
}

func (e *env) notRootFor(what string) error {
	return fmt.Errorf("only root can %s; this is user %d", what, e.uid)
}

// joining is what joining with a document needs of the program; the command adds the
// rest. flex: the document is a configuration of AKS Flex Node.
func (e *env) joining(file string, flex bool) (join.Setup, error) {
	h, err := e.open("/")
	if err != nil {
		return join.Setup{}, err
	}
	p := e.progress()
	parts := e.parts(h)
	parts.say = p.Say
	engine := func() *converge.Engine {
		opt := parts.engineOptions(h, joinCommand, p.Observe)
		opt.Trial.Later = true
		return converge.New(opt)
	}
	return join.Setup{
		Host: h, Command: joinCommand, Version: Version(), Start: e.start, Say: p.Say,
		Load: e.loader(parts, file, flex).Load,
		Apply: func(ctx context.Context, st *desired.State) (*converge.Result, error) {
			defer provision.Tell(h, joinCommand, e.start, p.Doing)()
			parts.inquiry.BeginJoin(ctx, st)
			res, err := engine().Apply(ctx, st)
			report.KeepTimeline(h, joinCommand, Version(), e.start, res, exitcode.OfCommand(err))
			return res, err
		},
		Keep:     func(ctx context.Context, st *desired.State) error { return engine().Keep(ctx, st.Owner) },
		Stay:     parts.stay(file, p.Observe),
		Remember: func(ctx context.Context, st *desired.State) error { return engine().Remember(ctx, st) },
		Await:    parts.watch().Await,
		Peers:    parts.peers().Of,
		Classify: exitcode.OfCommand,
	}, nil
}

func (e *env) loader(p *parts, file string, flex bool) *join.Loader {
	return &join.Loader{
		Host: p.host, Inquiry: &p.inquiry, File: file, Flex: flex, Drain: p.drains > 0, Say: p.say,
		Take: func(text []byte, c contract.Contract, f component.Facts) {
			p.document, p.gathered = text, f
			p.take(c)
		},
		Fetch: func(ctx context.Context, a *desired.Artifact) error { // a package runs scripts: its digest is known
			return newFetcher(true).FetchFile(ctx, p.host, a)
		},
	}
}

// joined runs a join and tells what came of it.
func (e *env) joined(ctx context.Context, output string, o join.Setup) error {
	r, err := join.Join(ctx, o)
	for _, line := range r.Lines() {
		o.Say(line)
	}
	if err != nil {
		for _, line := range report.Explain(join.Explain(err)) {
			o.Say(line)
		}
	}
	if output != "text" {
		if err := encode(e.out, output, &r); err != nil {
			return err
		}
	}
	return ending(r.ExitCode)
}
