package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

func openHost(root string) (host.Host, error) { return machine.New(root) }

// parts are the providers that the engine and the run work with.
type parts struct {
	host    host.Host
	fetcher *artifact.Fetcher
	// offline: the host is a root directory; fetch: download there all the same.
	offline, fetch bool
	// asked is the answer to a question for the address that was put early.
	asked func() (string, error)
	// takeOver makes a path this document's that another one wants otherwise.
	takeOver bool
}

func (e *env) parts(h host.Host) *parts {
	return &parts{host: h, fetcher: artifact.New(artifact.Options{RequireDigests: e.requireDigests}), takeOver: e.takeOver}
}

// bindTakeOver is the flag of commands that make a plan.
func (e *env) bindTakeOver(c *cobra.Command) {
	c.Flags().BoolVar(&e.takeOver, "take-over", false,
		"make this document's what a document of another kind put on the machine and wants otherwise")
}

// bindDigests is the flag of commands that may fetch.
func (e *env) bindDigests(c *cobra.Command) {
	c.Flags().BoolVar(&e.requireDigests, "require-digests", false,
		"fetch nothing of which neither URL, document, "+artifact.DigestDir+" nor bundle gives the digest")
}

func (p *parts) engine(h host.Host, command string, o converge.Observer) *converge.Engine {
	return converge.New(converge.Options{
		Host: h, Fetcher: p.fetcher, Issuer: identity.New(h), Prober: apiserver.Prober{}, Images: &provision.Images{Host: h},
		SelfSigned: identity.SelfSigned, ServingValid: identity.ServingValid, Observer: o,
		Command: fmt.Sprintf("%s (pid %d)", command, os.Getpid()),
		Offline: p.offline, NoFetch: p.offline && !p.fetch, TakeOver: p.takeOver,
	})
}

func (p *parts) facts(ctx context.Context, _ host.Host) (component.Facts, error) {
	return provision.Gather(ctx, p.host, p.factsSource())
}

// ask begins the question that takes longest where nobody answers.
func (p *parts) ask(ctx context.Context) { p.asked = p.factsSource().Ask(ctx) }

func (p *parts) factsSource() provision.FactsSource {
	return provision.FactsSource{
		Version: p.fetcher.Version, Images: provision.BundledImages, Offline: p.offline, Asked: p.asked,
		Address: func(ctx context.Context) string { return provision.NodeAddress(ctx, p.host) },
	}
}

// options are what a run needs of the program; the command adds the rest.
func (p *parts) options() provision.Options {
	return provision.Options{
		Host: p.host, Decode: contract.Decode, Ask: p.ask, Facts: p.facts,
		Apply: func(ctx context.Context, st *desired.State, o converge.Observer) (*converge.Result, error) {
			return p.engine(p.host, provision.Command, o).Apply(ctx, st)
		},
		Await: p.await,
	}
}

// await waits for the node that the state makes of this machine.
func (p *parts) await(ctx context.Context, st *desired.State, to provision.Stage, reached func(provision.Stage)) error {
	n := provision.NodeOf(p.host, st)
	w := &apiserver.NodeWatcher{
		Host: p.host, Node: n.Name, Kubeconfig: n.Kubeconfig, BootstrapKubeconfig: n.Bootstrap, Unit: kubelet.Unit,
		OnReach: func(s apiserver.NodeStage, _ time.Time) { reached(provision.Stage(s)) },
	}
	_, err := w.WaitFor(ctx, apiserver.NodeStage(to))
	return err
}

// notifyStatus tells systemd how a run stands, where a unit of its started it. It
// is best effort.
func notifyStatus(text string) {
	_, _ = daemon.SdNotify(false, "STATUS="+strings.ReplaceAll(text, "\n", "; "))
}
