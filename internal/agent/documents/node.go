package documents

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
)

// openNode reads what the document names: files of the machine, and the cluster's CA.
// What is missing may come, so that such a document is tried again.
func (o *Opener) openNode(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	c, err := contract.DecodeAs(contract.NodeConfig, d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.withoutCloud()
	facts, err := p.Inquiry.FactsFor(ctx, c)
	if err != nil {
		return nil, o.at(err)
	}
	facts.Agent = true // also where it is no service of berth's
	t, err := p.target(d, Applied{Text: d.Text, Contract: c, Facts: facts, Drains: true})
	if refs := contract.ReferencesOf(c); contract.Blames(err) && len(refs.Files) == 0 && refs.Discovery == nil {
		return nil, o.refused(err)
	}
	return t, o.at(err)
}
