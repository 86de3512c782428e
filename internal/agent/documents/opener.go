// Package documents turns the documents that the agent follows into what the machine is to
// be: it finds out whose they are, gathers what they refer to and translates them.
package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/agent/selfupdate"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// apiServerManifest is a file that only the machines of a control plane have.
const apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// Opener turns documents of one of the agent's sources into targets. All fields are
// required; Secrets only for sources whose documents may refer to some.
type Opener struct {
	Host    host.Host
	Source  agent.Source
	Secrets agent.SecretReader
	// Providers makes what one document is opened with.
	Providers func() Providers
	// Release is called after a document of so many bytes was read.
	Release func(size int)
}

// Providers are what one document is opened with.
type Providers struct {
	// Inquiry asks what the document needs.
	Inquiry *provision.Inquiry
	// Engine applies the document when it has been translated.
	Engine func(Applied) *converge.Engine
}

// Applied is a document that is going to be applied.
type Applied struct {
	Text     []byte
	Contract contract.Contract
	Facts    component.Facts
	// Drains: what the document says of draining the node counts.
	Drains bool
}

// kindsOf are the contracts that the agent follows.
var kindsOf = map[desired.Owner]contract.Kind{
	desired.OwnerAKS: contract.AKS, desired.OwnerOSC: contract.OperatingSystemConfig, desired.OwnerNode: contract.NodeConfig,
}

// Owner implements reconcile.Opener.
func (o *Opener) Owner(d *reconcile.Document) desired.Owner {
	kind, err := contract.Detect(d.Text)
	if err != nil {
		return ""
	}
	for owner, k := range kindsOf {
		if k == kind {
			return owner
		}
	}
	return ""
}

// Open implements reconcile.Opener. A document without a kind may be meant for the source:
// the decoder of what it brings says what is missing.
func (o *Opener) Open(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	owner := o.Owner(d)
	if !slices.Contains(o.Source.Owners, owner) {
		kind, err := contract.Detect(d.Text)
		if err == nil && kind != contract.AKS {
			err = fmt.Errorf("the document is a %s, want a %s", kind, kindsOf[o.Source.Owners[0]])
		}
		if err != nil {
			return nil, o.refused(err)
		}
		owner = o.Source.Owners[0]
	}
	switch owner {
	case desired.OwnerAKS:
		return o.openAKS(ctx, d)
	case desired.OwnerNode:
		return o.openNode(ctx, d)
	}
	return o.openOSC(ctx, d)
}

// refused is a document that can't be, with the file that it is in.
func (o *Opener) refused(err error) error { return &reconcile.RefusedError{Err: o.at(err)} }

// at names the file that a document is in.
func (o *Opener) at(err error) error {
	if o.Source.File == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", o.Source.File, err)
}

// withoutCloud are the providers for a document of which nothing depends on the cloud.
func (o *Opener) withoutCloud() Providers {
	p := o.Providers()
	p.Inquiry.WithoutCloud()
	return p
}

// LastGood implements reconcile.Opener.
func (o *Opener) LastGood(_ context.Context, owner desired.Owner) (*reconcile.Target, error) {
	kept, err := trial.Good(o.Host, owner)
	if err != nil || kept == nil {
		return nil, err
	}
	c, facts, err := decodeKept(kept)
	if err != nil {
		return nil, err
	}
	return o.withoutCloud().target(reconcile.DocumentOf(kept.Document), Applied{Text: kept.Document, Contract: c, Facts: facts})
}

func decodeKept(kept *trial.Contract) (c contract.Contract, facts component.Facts, err error) {
	if err := json.Unmarshal(kept.Facts, &facts); err != nil {
		return nil, facts, fmt.Errorf("read the facts: %w", err)
	}
	c, err = contract.Decode(kept.Document)
	return c, facts, err
}

// StateOf translates a contract that was kept, with the facts of its time; what is kept of
// the agent itself is its own state.
func StateOf(h host.Host, kept *trial.Contract) (*desired.State, error) {
	if selfupdate.IsVersion(kept.Document) {
		return selfupdate.State(h, kept.Document)
	}
	c, facts, err := decodeKept(kept)
	if err != nil {
		return nil, err
	}
	return c.Translate(facts)
}

func (p Providers) target(d *reconcile.Document, a Applied) (*reconcile.Target, error) {
	st, err := a.Contract.Translate(a.Facts)
	if err != nil {
		return nil, err
	}
	t := &reconcile.Target{Document: d, State: st, Agent: agentParts(contract.AgentOf(a.Contract)), Engine: p.Engine(a)}
	for _, n := range provision.Unused(a.Contract, st) {
		t.Notes = append(t.Notes, n.Path+": "+n.Reason)
	}
	for _, r := range st.Resources {
		t.ControlPlane = t.ControlPlane || strings.Join(r.FilePaths(), "\n") == apiServerManifest
	}
	return t, nil
}

// agentParts are a document's words on the agent, as the agent takes them.
func agentParts(p *osc.AgentParts) *selfupdate.Parts {
	if p == nil {
		return nil
	}
	out := &selfupdate.Parts{Field: p.Field, Unit: p.Unit, DropIns: p.DropIns}
	if p.Path != "" {
		out.Program = &selfupdate.Program{Path: p.Path, Image: p.Image, Member: p.Member, Ahead: p.Ahead, Content: p.Content}
	}
	return out
}
