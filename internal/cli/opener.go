package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// agentCommandName is what the agent calls itself where it holds the lock.
const agentCommandName = "berth agent"

// apiServerManifest is a file that only the machines of a control plane have.
const apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// opener turns documents of one of the agent's sources into targets.
type opener struct {
	e       *env
	host    host.Host
	secrets agent.SecretReader
	source  agent.Source
	// try: a change that breaks what ran is taken back.
	try bool
}

// kindsOf are the contracts that the agent follows.
var kindsOf = map[desired.Owner]contract.Kind{
	desired.OwnerAKS: contract.AKS, desired.OwnerOSC: contract.OperatingSystemConfig, desired.OwnerNode: contract.NodeConfig,
}

// Owner implements reconcile.Opener.
func (o *opener) Owner(d *reconcile.Document) desired.Owner {
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
func (o *opener) Open(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	owner := o.Owner(d)
	if !slices.Contains(o.source.Owners, owner) {
		kind, err := contract.Detect(d.Text)
		if err == nil && kind != contract.AKS {
			err = fmt.Errorf("the document is a %s, want a %s", kind, kindsOf[o.source.Owners[0]])
		}
		if err != nil {
			return nil, o.refused(err)
		}
		owner = o.source.Owners[0]
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
func (o *opener) refused(err error) error { return &reconcile.RefusedError{Err: o.at(err)} }

// at names the file that a document is in.
func (o *opener) at(err error) error {
	if o.source.File == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", o.source.File, err)
}

// LastGood implements reconcile.Opener.
func (o *opener) LastGood(_ context.Context, owner desired.Owner) (*reconcile.Target, error) {
	kept, err := trial.Good(o.host, owner)
	if err != nil || kept == nil {
		return nil, err
	}
	var facts component.Facts
	if err := json.Unmarshal(kept.Facts, &facts); err != nil {
		return nil, fmt.Errorf("read the facts: %w", err)
	}
	c, err := contract.Decode(kept.Document)
	if err != nil {
		return nil, err
	}
	return o.target(reconcile.DocumentOf(kept.Document), c, o.parts(kept.Document), facts)
}

// parts asks no cloud: nothing of the document depends on it.
func (o *opener) parts(document []byte) *parts {
	p := o.e.parts(o.host)
	p.document, p.noRevert, p.yields = document, !o.try, true
	p.inquiry.WithoutCloud()
	return p
}

// unitTimeout is how long a document waits for one unit. One that takes longer goes on starting:
// the document is tried again, and meanwhile the agent does what else there is to do.
const unitTimeout = 3 * time.Minute

func (o *opener) target(d *reconcile.Document, c contract.Contract, p *parts, facts component.Facts) (*reconcile.Target, error) {
	st, err := c.Translate(facts)
	if err != nil {
		return nil, err
	}
	p.gathered = facts
	if c.Terms().RequireDigests {
		p.fetcher = newFetcher(true)
	}
	opt := p.engineOptions(o.host, agentCommandName, nil)
	opt.GoOn, opt.UnitTimeout = true, unitTimeout
	t := &reconcile.Target{Document: d, State: st, Agent: agentParts(contract.AgentOf(c)), Engine: converge.New(opt)}
	for _, n := range (&document{contract: c, state: st}).unused() {
		t.Notes = append(t.Notes, n.Path+": "+n.Reason)
	}
	for _, r := range st.Resources {
		t.ControlPlane = t.ControlPlane || strings.Join(r.FilePaths(), "\n") == apiServerManifest
	}
	return t, nil
}
