package documents

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/contract/osc"
	"github.com/berth-dev/berth/internal/provision"
)

// openOSC reads the Secrets to which the document refers.
func (o *Opener) openOSC(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	doc, err := osc.Decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.withoutCloud()
	facts := provision.GatherForChanges(ctx, o.Host, p.Inquiry.Source)
	facts.Agent = true // also where it is no service of berth's
	refs := doc.SecretRefs(facts.Hostname)
	if facts.SecretData, err = o.resolve(ctx, refs); err != nil {
		return nil, err
	}
	t, err := p.target(d, Applied{Text: d.Text, Contract: contract.OfOSC(doc), Facts: facts})
	o.Release(len(d.Text))            // reading takes as much as applying
	if err != nil && len(refs) == 0 { // else a Secret may get what is missing
		err = o.refused(err)
	}
	return t, err
}

// Former implements reconcile.Opener. What Secrets held is what their files hold.
func (o *Opener) Former(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	doc, err := osc.Decode(d.Text)
	if err != nil {
		return nil, &reconcile.RefusedError{Err: err}
	}
	p := o.withoutCloud()
	facts := provision.GatherForChanges(ctx, o.Host, p.Inquiry.Source)
	facts.Agent, facts.SecretData = true, map[string]map[string][]byte{}
	for ref, at := range doc.SecretFiles(facts.Hostname) {
		held, _ := o.Host.ReadFile(at) // what is not there is not taken over
		if facts.SecretData[ref.Name] == nil {
			facts.SecretData[ref.Name] = map[string][]byte{}
		}
		facts.SecretData[ref.Name][ref.Key] = held
	}
	return p.target(d, Applied{Text: d.Text, Contract: contract.OfOSC(doc), Facts: facts})
}

// resolve reads the Secrets that a document refers to.
func (o *Opener) resolve(ctx context.Context, refs []osc.SecretRef) (map[string]map[string][]byte, error) {
	read, out := map[string]*core.Secret{}, map[string]map[string][]byte{}
	for _, ref := range refs {
		if read[ref.Name] == nil {
			s, err := o.Secrets(ctx, ref.Name)
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
