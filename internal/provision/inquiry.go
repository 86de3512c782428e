package provision

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
)

// Inquiry is what one command asks about a machine for its document: the machine itself,
// its cloud, and the cluster that it is in or is to join. What takes long is asked before
// it is needed. All fields up to Again are required.
type Inquiry struct {
	Host host.Host
	// Source is where facts come from; its Asked is the inquiry's own. Where it is Offline,
	// nobody else is asked.
	Source FactsSource
	// Agent says whether berth's agent is a service of the machine.
	Agent func(host.FS) (bool, error)
	// Again asks the cloud for what a document needs and nobody told at once.
	Again func(context.Context) azure.Cloud

	// Node is the Node, asked for early.
	Node apiserver.Ahead
	// Unit is containerd's, asked for early.
	Unit UnitAhead
	// Probe is that of the API server, Certificate kubelet's: they begin early where the
	// machine is no node yet.
	Probe       apiserver.EarlyProbe
	Certificate identity.EarlyIssue
}

// Begin begins the questions that take longest: to the cloud, where nobody may answer,
// and to the API server, for the Node that this machine is in nearly every case. It
// asks systemd about containerd meanwhile, which most documents are about: where systemd has
// not loaded it, each question has it search all its directories.
func (q *Inquiry) Begin(ctx context.Context) {
	q.Source.Asked = q.Source.Ask(ctx)
	if !q.Source.Offline {
		q.BeginMachine(ctx)
	}
}

// BeginMachine is Begin without the cloud.
func (q *Inquiry) BeginMachine(ctx context.Context) {
	go func() {
		_ = converge.Safely(func() error {
			q.Node.Ask(ctx, q.Host, KubeconfigInUse(q.Host), Hostname(q.Host))
			return nil
		})
	}()
	q.Unit.Ask(ctx, q.Host, containerd.Unit)
}

// WithoutCloud is for documents of which nothing depends on the cloud: nobody waits for it.
func (q *Inquiry) WithoutCloud() {
	q.Source.Asked = func() (azure.Cloud, error) { return azure.Cloud{}, nil }
}

// Facts are what translation may depend on, whatever the document is.
func (q *Inquiry) Facts(ctx context.Context) (f component.Facts, err error) {
	if f, err = Gather(ctx, q.Host, q.Source); err == nil {
		f.Agent, err = q.Agent(q.Host)
	}
	return f, err
}

// FactsFor are the facts for a document, with what it refers to. A NodeConfig says
// itself what clouds say of other machines: nobody waits for their answer.
func (q *Inquiry) FactsFor(ctx context.Context, c contract.Contract) (component.Facts, error) {
	if c.Kind() == contract.NodeConfig {
		q.WithoutCloud()
	}
	f, err := q.Facts(ctx)
	if err != nil {
		return f, err
	}
	if c.Kind() == contract.NodeConfig {
		f.Agent = false // one that is there may follow other documents
	}
	refs := contract.ReferencesOf(c)
	if q.Source.Offline && refs.Settings != nil { // the root is not asked for, and its node is not this machine
		refs.Settings = &component.SettingsQuestion{Known: refs.Settings.Known}
	}
	if q.Source.Offline { // nor is it a machine of the cloud that would answer here
		refs.CloudCA = nil
	}
	return q.refer(ctx, refs, f, unobserved)
}

// FactsReferred are the facts for a document of a run, with what the document refers to;
// meanwhile it begins to probe the API server. observe is told of what others are asked.
func (q *Inquiry) FactsReferred(ctx context.Context, r component.References, observe converge.Observer) (component.Facts, error) {
	q.beginProbe(ctx, r.Server)
	f, err := q.Facts(ctx)
	if err == nil {
		f, err = q.refer(ctx, r, f, observe)
	}
	return f, err
}

// unobserved: nobody is told of what is asked.
func unobserved(converge.Span) {}

// refer adds what a document refers to. The cloud may have been busy when it was asked
// for all at once: an address without which the machine does not join is asked for again,
// and so are interfaces, which would be matched by their names else.
func (q *Inquiry) refer(ctx context.Context, r component.References, f component.Facts, o converge.Observer) (component.Facts, error) {
	server, interfaces := r.PrivateServer && !f.APIServer.IsValid(), !f.KnowsInterfaces(r.Interfaces)
	if (server || interfaces) && !q.Source.Offline {
		told := q.Again(ctx)
		if server {
			f.APIServer = told.APIServer
		}
		if interfaces && told.Interfaces != "" {
			f.Interfaces = strings.Split(told.Interfaces, ",")
		}
	}
	return Refer(ctx, q.Host, r, f, o)
}
