package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// agentCommandName is what the agent calls itself where it holds the lock.
const agentCommandName = "berth agent"

// apiServerManifest is a file that only the machines of a control plane have.
const apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// oscOpener turns documents of the agent's Secret into targets.
type oscOpener struct {
	e       *env
	host    host.Host
	secrets agent.SecretReader
	// try: a change that breaks what ran is taken back.
	try bool
	// file is where documents come from; "" for the Secret.
	file string
}

func newOSCOpener(e *env, h host.Host, secrets agent.SecretReader, try bool) *oscOpener {
	return &oscOpener{e: e, host: h, secrets: secrets, try: try}
}

// Open implements reconcile.Opener.
func (o *oscOpener) Open(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	doc, err := osc.Decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.parts(d.Text)
	facts, err := p.facts(ctx, o.host)
	if err != nil {
		return nil, err
	}
	facts.Agent = true // also where it is no service of berth's
	refs := doc.SecretRefs(facts.Hostname)
	if facts.SecretData, err = o.resolve(ctx, refs); err != nil {
		return nil, err
	}
	t, err := o.target(d, contract.OfOSC(doc), p, facts)
	release(len(d.Text))              // reading takes as much as applying
	if err != nil && len(refs) == 0 { // else a Secret may get what is missing
		err = o.refused(err)
	}
	return t, err
}

// refused is a document that can't be, with the file that it is in.
func (o *oscOpener) refused(err error) error {
	if o.file != "" {
		err = fmt.Errorf("%s: %w", o.file, err)
	}
	return &reconcile.RefusedError{Err: err}
}

// LastGood implements reconcile.Opener.
func (o *oscOpener) LastGood(context.Context) (*reconcile.Target, error) {
	return o.good(desired.OwnerOSC)
}

// good is an owner's last good document.
func (o *oscOpener) good(owner desired.Owner) (*reconcile.Target, error) {
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

// Former implements reconcile.Opener. What Secrets held is what their files hold.
func (o *oscOpener) Former(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	doc, err := osc.Decode(d.Text)
	if err != nil {
		return nil, &reconcile.RefusedError{Err: err}
	}
	p := o.parts(d.Text)
	facts, err := p.facts(ctx, o.host)
	if err != nil {
		return nil, err
	}
	facts.Agent, facts.SecretData = true, map[string]map[string][]byte{}
	for ref, at := range doc.SecretFiles(facts.Hostname) {
		held, _ := o.host.ReadFile(at) // what is not there is not taken over
		if facts.SecretData[ref.Name] == nil {
			facts.SecretData[ref.Name] = map[string][]byte{}
		}
		facts.SecretData[ref.Name][ref.Key] = held
	}
	return o.target(d, contract.OfOSC(doc), p, facts)
}

// parts asks no cloud: nothing of the document depends on it.
func (o *oscOpener) parts(document []byte) *parts {
	p := o.e.parts(o.host)
	p.document, p.noRevert, p.yields = document, !o.try, true
	p.asked = func() (provision.Cloud, error) { return provision.Cloud{}, nil }
	return p
}

func (o *oscOpener) target(d *reconcile.Document, c contract.Contract, p *parts, facts component.Facts) (*reconcile.Target, error) {
	st, err := c.Translate(facts)
	if err != nil {
		return nil, err
	}
	p.gathered = facts
	t := &reconcile.Target{Document: d, State: st, Agent: agentParts(contract.AgentOf(c)), Engine: p.engine(o.host, agentCommandName, nil)}
	for _, n := range (&document{contract: c, state: st}).unused() {
		t.Notes = append(t.Notes, n.Path+": "+n.Reason)
	}
	for _, r := range st.Resources {
		t.ControlPlane = t.ControlPlane || strings.Join(r.FilePaths(), "\n") == apiServerManifest
	}
	return t, nil
}

// resolve reads the Secrets that a document refers to.
func (o *oscOpener) resolve(ctx context.Context, refs []osc.SecretRef) (map[string]map[string][]byte, error) {
	read, out := map[string]*core.Secret{}, map[string]map[string][]byte{}
	for _, ref := range refs {
		if read[ref.Name] == nil {
			s, err := o.secrets(ctx, ref.Name)
			if err != nil {
				return nil, fmt.Errorf("read Secret %s, to which the document refers: %w", ref.Name, err)
			}
			read[ref.Name], out[ref.Name] = s, map[string][]byte{}
		}
		if value, ok := read[ref.Name].Data[ref.Key]; ok {
			out[ref.Name][ref.Key] = value
		}
	}
	return out, nil
}
