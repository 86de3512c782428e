package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
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
	ledger  *ledger.Reader
	fetcher *artifact.Fetcher
	// inquiry is what is asked for the document.
	inquiry provision.Inquiry
	// fetch: download also where the host is a root directory.
	fetch bool
	// takeOver makes a path this document's that another one wants otherwise.
	takeOver bool
	// requireDigests is the command line's word, which counts for the agent, too.
	requireDigests bool
	// noRevert leaves a change as it is that does not hold; within is how long a person
	// has to confirm one.
	noRevert bool
	within   time.Duration
	// kubelet is the version that the document wants; the node is drained before one of
	// another version starts where pods have a time to go, drains.
	kubelet string
	server  string
	drains  time.Duration
	// ending: what the command does ends a trial, and so the drain that came with it.
	ending bool
	say    func(line string)
	// yields leaves a change alone that a person tries.
	yields bool
	// document is what is applied, gathered what translation knew of the machine.
	document []byte
	gathered component.Facts
	// refers is what the document that decode took refers to.
	refers component.References
}

// newFetcher is a fetcher as every run has it.
func newFetcher(requireDigests bool) *artifact.Fetcher {
	return artifact.New(artifact.Options{RequireDigests: requireDigests, Identity: azure.RegistryIdentity})
}

func (e *env) parts(h host.Host) *parts {
	own, _ := os.Executable() // where it does not tell, units name the published path
	fetcher := newFetcher(e.requireDigests)
	return &parts{
		host: h, ledger: &e.ledger, fetcher: fetcher,
		inquiry: provision.Inquiry{
			Host: h, Agent: func(h host.FS) (bool, error) { return agent.IsService(h) }, Again: azure.AskAgain,
			Source: provision.FactsSource{
				Program: selfupdate.Called(own), Version: fetcher.Version, Images: provision.BundledImages,
				Cloud: func(ctx context.Context) azure.Cloud { return azure.AskCloud(ctx, h) },
			},
		},
		requireDigests: e.requireDigests, takeOver: e.takeOver, noRevert: e.noRevert, drains: e.drains(), say: func(string) {},
	}
}

// bindTakeOver is the flag of commands that make a plan.
func (e *env) bindTakeOver(c *cobra.Command) {
	c.Flags().BoolVar(&e.takeOver, "take-over", false,
		"make this document's what a document of another kind put on the machine and wants otherwise")
}

// bindNoRevert is the flag of commands that try a change.
func (e *env) bindNoRevert(c *cobra.Command) {
	c.Flags().BoolVar(&e.noRevert, "no-revert", false, "leave a change as it is that breaks what ran; without it, the last good configuration comes back")
}

// bindDigests is the flag of commands that may fetch.
func (e *env) bindDigests(c *cobra.Command) {
	c.Flags().BoolVar(&e.requireDigests, "require-digests", false,
		"fetch nothing of which neither URL, document, "+artifact.DigestDir+" nor bundle gives the digest")
}

func (p *parts) engine(h host.Host, command string, o converge.Observer) *converge.Engine {
	return converge.New(p.engineOptions(h, command, o))
}

func (p *parts) engineOptions(h host.Host, command string, o converge.Observer) converge.Options {
	connections, q := &apiserver.Connections{}, &p.inquiry
	return converge.Options{
		Host: h, Ledger: p.ledger,
		Providers: converge.Providers{Fetcher: p.fetcher, Issuer: identity.New(h).Over(connections).With(azure.New(h)).After(&q.Certificate),
			Prober: provision.Prober{Host: h, Server: apiserver.Prober{Connections: connections, Early: &q.Probe}},
			Images: &provision.Images{Host: h, Fetcher: p.fetcher}, Nodes: apiserver.Nodes{Host: h, Ahead: &q.Node, Connections: connections},
			SelfSigned: identity.SelfSigned, ServingValid: identity.ServingValid, UnitAhead: q.Unit.Take},
		Observer: o,
		Command:  fmt.Sprintf("%s (pid %d)", command, os.Getpid()),
		Offline:  q.Source.Offline, NoFetch: q.Source.Offline && !p.fetch, TakeOver: p.takeOver,
		Trial: p.trial(), Drainer: p.drainer(),
	}
}

// take has the engine do as a document says, and what the command line says besides.
func (p *parts) take(c contract.Contract) {
	p.kubelet, p.server = contract.KubeletOf(c), contract.ServerOf(c)
	p.drains = cmp.Or(p.drains, contract.DrainOf(c))
	p.takeDigests(c)
}

// takeDigests has nothing fetched without a digest where a document says so.
func (p *parts) takeDigests(c contract.Contract) {
	if c.Terms().RequireDigests {
		p.fetcher = newFetcher(true)
	}
}

// factsFor are the facts for a document, which is taken.
func (p *parts) factsFor(ctx context.Context, c contract.Contract) (f component.Facts, err error) {
	p.gathered, err = p.inquiry.FactsFor(ctx, c)
	p.take(c)
	return p.gathered, err
}

// decode takes a document, and remembers it, with what it refers to.
func (p *parts) decode(b []byte) (contract.Contract, error) {
	p.document = b
	c, err := contract.Decode(b)
	if err == nil {
		p.refers = contract.ReferencesOf(c)
	}
	return c, err
}

// factsOfDecoded are the facts for the document that decode took.
func (p *parts) factsOfDecoded(ctx context.Context, _ host.Host, o converge.Observer) (f component.Facts, err error) {
	p.gathered, err = p.inquiry.FactsReferred(ctx, p.refers, o)
	return p.gathered, err
}

// options are what a run needs of the program; the command adds the rest.
func (p *parts) options() provision.Options {
	return provision.Options{
		Host: p.host, Decode: p.decode, Ask: p.inquiry.Begin, Facts: p.factsOfDecoded,
		Apply: func(ctx context.Context, st *desired.State, o converge.Observer) (*converge.Result, error) {
			p.inquiry.BeginJoin(ctx, st)
			return p.provisioner(o).Apply(ctx, st)
		},
		Remember: func(ctx context.Context, st *desired.State) error {
			return p.engine(p.host, provision.Command, nil).Remember(ctx, st)
		},
		Await: p.await,
	}
}

// provisioner is the engine of a run that says itself when a first configuration
// is good.
func (p *parts) provisioner(o converge.Observer) *converge.Engine {
	opt := p.engineOptions(p.host, provision.Command, o)
	opt.Trial.Later = true
	return converge.New(opt)
}

// await waits for the node that the state makes of this machine. What has come so
// far is good.
func (p *parts) await(ctx context.Context, st *desired.State, to provision.Milestone, reached func(provision.Milestone)) error {
	if err := p.watch().Await(ctx, st, to, reached); err != nil {
		return err
	}
	return p.provisioner(nil).Keep(ctx, st.Owner)
}

func (p *parts) watch() provision.Watch { return provision.Watch{Host: p.host} }

// notifyStatus tells systemd how a run stands, where a unit of its started it. It
// is best effort.
func notifyStatus(text string) {
	_, _ = daemon.SdNotify(false, "STATUS="+strings.ReplaceAll(text, "\n", "; "))
}
