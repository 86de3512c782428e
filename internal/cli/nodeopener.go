package cli

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
)

// openNode reads what the document names: files of the machine, and the cluster's CA.
// What is missing may come, so that such a document is tried again.
func (o *opener) openNode(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	c, err := contract.DecodeAs(contract.NodeConfig, d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.parts(d.Text)
	facts, err := p.factsFor(ctx, c)
	if err != nil {
		return nil, o.at(err)
	}
	facts.Agent = true // also where it is no service of berth's
	t, err := o.target(d, c, p, facts)
	if refs := contract.ReferencesOf(c); contract.Blames(err) && len(refs.Files) == 0 && refs.Discovery == nil {
		return nil, o.refused(err)
	}
	return t, o.at(err)
}
