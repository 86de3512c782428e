package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/doctor"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/survey"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/provision"
)

// checkFlags are those of commands that make checks.
type checkFlags struct {
	output string
	ignore []string
	strict bool
}

func (f *checkFlags) bind(c *cobra.Command) {
	c.Flags().StringVarP(&f.output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	c.Flags().StringSliceVar(&f.ignore, "ignore", nil, "what the check `NAME` finds does not count; may be repeated, all is every check")
	f.bindStrict(c)
}

func (f *checkFlags) bindStrict(c *cobra.Command) {
	c.Flags().BoolVar(&f.strict, "fail-on-warnings", false, "a warning is no success, either")
}

func (f *checkFlags) complete() error {
	if name := doctor.UnknownCheck(f.ignore); name != "" {
		return fmt.Errorf("--ignore %s: there is no such check", name)
	}
	return oneOf(f.output, "text", "json", "yaml")
}

const checkCodes = "Exit code 0: nothing stands in the way, as far as it can be known; 1: an error; 2: a warning, with --fail-on-warnings.\n" +
	"The checks: docs/preflight.md."

func (e *env) preflight() *cobra.Command {
	var f checkFlags
	var file string
	c := &cobra.Command{
		Use: "preflight -f FILE", Short: "Find out what keeps this machine from being the node that a document asks for", Args: e.noArgs,
		Long: "Find out what keeps this machine from being the node that a document asks for: the machine, its network, the API server,\n" +
			"the credential, every download. Nothing is changed, nothing is fetched, and what root alone may see is unknown to others.\n" + checkCodes,
		RunE: func(c *cobra.Command, _ []string) error {
			err := f.complete()
			if err == nil && file == "" {
				err = errors.New("-f FILE is missing")
			}
			if err != nil {
				return e.usage(c, err)
			}
			text, err := provision.ReadDocument(c.Context(), file)
			if err != nil {
				return err
			}
			r, err := e.examine(c.Context(), text, f.ignore)
			if err != nil {
				return err
			}
			return e.reportChecks(r, f)
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "read the document from `FILE`; - is standard input")
	f.bind(c)
	return c
}

func (e *env) doctor() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use: "doctor", Short: "Find out how this node is, and why it is not Ready", Args: e.noArgs,
		Long: "Find out how this node is, and why it is not Ready: the machine, container runtime, network, kubelet, its certificate,\n" +
			"the API server and the Node. Nothing is changed. What explains the most is named.\n" + checkCodes,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.complete(); err != nil {
				return e.usage(c, err)
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			o := e.doctorOptions(h)
			o.Tokens = func(ctx context.Context, a *desired.AzureIdentity, _ *desired.Egress) (desired.Secret, error) { // as berth token does
				source, err := azure.NewRecorded(host.ReadOnly{Host: h}, a)
				if err != nil {
					return "", err
				}
				t, err := source.ForServer(ctx, a)
				return t.Text, err
			}
			return e.reportChecks(doctor.Run(c.Context(), doctor.Node, o, f.ignore), f)
		},
	}
	f.bind(c)
	return c
}

// doctorOptions are what all checks need of the program.
func (e *env) doctorOptions(h host.Host) doctor.Options {
	return doctor.Options{
		Host: h, Survey: survey.Machine{}, UID: e.uid, Env: os.Getenv,
		Runtime: func(ctx context.Context) (doctor.Runtime, error) { return cri.Open(ctx, paths.ContainerdSocket) },
	}
}

// examine makes the checks that a document calls for.
func (e *env) examine(ctx context.Context, text []byte, ignore []string) (doctor.Report, error) {
	h, err := e.open("/")
	if err != nil {
		return doctor.Report{}, err
	}
	c, err := provision.Decode(text)
	if err != nil {
		return doctor.Report{}, err
	}
	e.requireDigests = e.requireDigests || c.Terms().RequireDigests
	p, o := e.parts(host.ReadOnly{Host: h}), e.doctorOptions(h)
	o.Tokens = azure.New(host.ReadOnly{Host: h}).Bootstrap
	o.Config, o.Fetcher = contract.NodeConfigOf(c), p.fetcher
	o.References = contract.ReferencesOf(c)
	o.Settled = func() bool { return provision.Settled(h, o.References, contract.ServerOf(c)) }
	o.Granted = func(ctx context.Context, q doctor.AzureQuestion) ([]azure.Grant, error) { return q.Ask(ctx, h) }
	o.State = func(ctx context.Context) (*desired.State, error) {
		facts, err := p.factsFor(ctx, c)
		if err != nil {
			return nil, err
		}
		return c.Translate(facts)
	}
	o.Plan = func(ctx context.Context, st *desired.State) (*converge.Plan, error) {
		return p.engine(p.host, "berth preflight", nil).Plan(ctx, st)
	}
	return doctor.Run(ctx, doctor.Preflight, o, ignore), nil
}

// reportChecks prints what was found, and returns what the program ends with.
func (e *env) reportChecks(r doctor.Report, f checkFlags) error {
	var err error
	if f.output == "text" {
		err = r.Write(e.out)
	} else {
		err = encode(e.out, f.output, r)
	}
	switch {
	case err != nil:
		return err
	case r.Summary.Errors > 0:
		return told(exitcode.Failed)
	case f.strict && r.Summary.Warnings > 0:
		return told(exitcode.Warned)
	}
	return nil
}
