package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
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
	// offline: the host is a root directory; fetch: download there all the same.
	offline, fetch bool
	// asked is the answer to a question to the cloud that was put early.
	asked func() (azure.Cloud, error)
	// askAgain asks the cloud for what a document needs and nobody told at once.
	askAgain func(context.Context) azure.Cloud
	// registered: the machine is one of Azure Arc.
	registered bool
	// node is the Node, asked for early, too.
	node apiserver.Ahead
	// probe is that of the API server, which begins early where the machine is no node yet.
	probe apiserver.EarlyProbe
	// certificate is kubelet's, which is asked for where that goes well.
	certificate identity.EarlyIssue
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
	// file is where join reads the document.
	file string
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
	return &parts{host: h, ledger: &e.ledger, fetcher: newFetcher(e.requireDigests), requireDigests: e.requireDigests, takeOver: e.takeOver, noRevert: e.noRevert, drains: e.drains(), say: func(string) {},
		askAgain: azure.AskAgain}
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
	connections := &apiserver.Connections{}
	return converge.Options{
		Host: h, Ledger: p.ledger,
		Providers: converge.Providers{Fetcher: p.fetcher, Issuer: identity.New(h).Over(connections).With(azure.New(h)).After(&p.certificate),
			Prober: provision.Prober{Host: h, Server: apiserver.Prober{Connections: connections, Early: &p.probe}},
			Images: &provision.Images{Host: h, Fetcher: p.fetcher}, Nodes: apiserver.Nodes{Host: h, Ahead: &p.node, Connections: connections},
			SelfSigned: identity.SelfSigned, ServingValid: identity.ServingValid},
		Observer: o,
		Command:  fmt.Sprintf("%s (pid %d)", command, os.Getpid()),
		Offline:  p.offline, NoFetch: p.offline && !p.fetch, TakeOver: p.takeOver,
		Trial: p.trial(), Drainer: p.drainer(),
	}
}

func (p *parts) facts(ctx context.Context, _ host.Host) (f component.Facts, err error) {
	if f, err = provision.Gather(ctx, p.host, p.factsSource()); err == nil {
		f.Agent, err = agent.IsService(p.host)
	}
	p.gathered = f
	return f, err
}

// factsOf are the facts for a document, with what it refers to. A NodeConfig says
// itself what clouds say of other machines: nobody waits for their answer.
func (p *parts) factsOf(ctx context.Context, c contract.Contract) (component.Facts, error) {
	if c.Kind() == contract.NodeConfig {
		p.asked = func() (azure.Cloud, error) { return azure.Cloud{}, nil }
	}
	f, err := p.facts(ctx, p.host)
	if err != nil {
		return f, err
	}
	if c.Kind() == contract.NodeConfig {
		f.Agent = false // one that is there may follow other documents
	}
	p.kubelet, p.server = contract.KubeletOf(c), contract.ServerOf(c)
	if p.drains == 0 {
		p.drains = contract.DrainOf(c)
	}
	if c.Terms().RequireDigests {
		p.fetcher = newFetcher(true)
	}
	refs := contract.ReferencesOf(c)
	if p.offline && refs.Settings != nil { // the root is not asked for, and its node is not this machine
		refs.Settings = &component.SettingsQuestion{Known: refs.Settings.Known}
	}
	if p.offline { // nor is it a machine of the cloud that would answer here
		refs.CloudCA = nil
	}
	p.gathered, err = p.refer(ctx, refs, f, unobserved)
	return p.gathered, err
}

// refer adds what a document refers to. The cloud may have been busy when it was asked
// for all at once: an address without which the machine does not join is asked for again,
// and so are interfaces, which would be matched by their names else.
func (p *parts) refer(ctx context.Context, r component.References, f component.Facts, o converge.Observer) (component.Facts, error) {
	server, interfaces := r.PrivateServer && !f.APIServer.IsValid(), !f.KnowsInterfaces(r.Interfaces)
	if (server || interfaces) && !p.offline {
		told := p.askAgain(ctx)
		if server {
			f.APIServer = told.APIServer
		}
		if interfaces && told.Interfaces != "" {
			f.Interfaces = strings.Split(told.Interfaces, ",")
		}
	}
	return provision.Refer(ctx, p.host, r, f, o)
}

// unobserved: nobody is told of what is asked.
func unobserved(converge.Span) {}

// decode takes a document, and remembers it, with what it refers to.
func (p *parts) decode(b []byte) (contract.Contract, error) {
	p.document = b
	c, err := contract.Decode(b)
	if err == nil {
		p.refers = contract.ReferencesOf(c)
	}
	return c, err
}

// factsOfDecoded are the facts for the document that decode took, with what it refers to.
func (p *parts) factsOfDecoded(ctx context.Context, _ host.Host, o converge.Observer) (component.Facts, error) {
	f, err := p.facts(ctx, p.host)
	if err == nil {
		f, err = p.refer(ctx, p.refers, f, o)
	}
	p.gathered = f
	return f, err
}

// ask begins the questions that take longest: to the cloud, where nobody may answer,
// and to the API server, for the Node that this machine is in nearly every case. It
// has systemd look at containerd meanwhile, which most documents are about: what systemd
// searches for that, it keeps.
func (p *parts) ask(ctx context.Context) {
	p.asked = p.factsSource().Ask(ctx)
	if !p.offline {
		p.askMachine(ctx)
	}
}

// askMachine is ask without the cloud.
func (p *parts) askMachine(ctx context.Context) {
	go func() {
		_ = converge.Safely(func() error {
			p.node.Ask(ctx, p.host, p.kubeconfig(), provision.Hostname(p.host))
			return nil
		})
	}()
	go func() {
		_ = converge.Safely(func() error {
			_, err := p.host.Unit(ctx, containerd.Unit) // whoever asks next has the error
			return err
		})
	}()
}

// joinEarly begins to probe the API server beside the plan, which is going to ask for it,
// and asks for kubelet's certificate with the bootstrap token, where that waits for nothing
// but the probe.
func (p *parts) joinEarly(ctx context.Context, st *desired.State) {
	c := p.earlyCheck(st)
	if c == nil {
		return
	}
	certificate, ok := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
	ok = ok && !slices.ContainsFunc(certificate.After, func(id desired.ID) bool { return id != c.ID() })
	p.probe.Begin(ctx, c, func(over *apiserver.Connections) {
		if ok {
			p.certificate.Begin(ctx, identity.New(p.host).Over(over), certificate)
		}
	})
}

// earlyCheck is the check of the API server of a machine that is no node yet; else nil.
func (p *parts) earlyCheck(st *desired.State) *desired.Check {
	c, ok := st.Lookup(desired.CheckID(desired.CheckAPIServer)).(*desired.Check)
	if _, err := p.host.Lstat(p.kubeconfig()); !ok || p.offline || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c
}

// kubeconfig is the first of those of kubelet that is there, or may be; berth's where none is.
func (p *parts) kubeconfig() string {
	for _, at := range provision.Kubeconfigs(p.host) {
		if _, err := p.host.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return at
		}
	}
	return kubelet.Kubeconfig
}

func (p *parts) factsSource() provision.FactsSource {
	own, _ := os.Executable() // where it does not tell, units name the published path
	return provision.FactsSource{
		Program: selfupdate.Called(own), Version: p.fetcher.Version, Images: provision.BundledImages, Offline: p.offline, Asked: p.asked,
		Cloud: func(ctx context.Context) azure.Cloud { return azure.AskCloud(ctx, p.host) },
	}
}

// options are what a run needs of the program; the command adds the rest.
func (p *parts) options() provision.Options {
	return provision.Options{
		Host: p.host, Decode: p.decode, Ask: p.ask, Facts: p.factsOfDecoded,
		Apply: func(ctx context.Context, st *desired.State, o converge.Observer) (*converge.Result, error) {
			p.joinEarly(ctx, st)
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
	if err := p.awaitMilestones(ctx, st, to, reached); err != nil {
		return err
	}
	return p.provisioner(nil).Keep(ctx, st.Owner)
}

func (p *parts) awaitMilestones(ctx context.Context, st *desired.State, to provision.Milestone, reached func(provision.Milestone)) error {
	w := p.watcher(st)
	w.OnReach = func(s apiserver.Milestone, _ time.Time) { reached(provision.Milestone(s)) }
	_, err := w.WaitFor(ctx, apiserver.Milestone(to))
	return err
}

// watcher watches the node that a state makes of this machine.
func (p *parts) watcher(st *desired.State) apiserver.NodeWatcher {
	n := provision.NodeOf(p.host, st)
	return apiserver.NodeWatcher{
		Host: p.host, Node: n.Name, Kubeconfig: n.Kubeconfig, BootstrapKubeconfig: n.Bootstrap, Unit: kubelet.Unit, Healthz: n.Healthz,
	}
}

// notifyStatus tells systemd how a run stands, where a unit of its started it. It
// is best effort.
func notifyStatus(text string) {
	_, _ = daemon.SdNotify(false, "STATUS="+strings.ReplaceAll(text, "\n", "; "))
}
