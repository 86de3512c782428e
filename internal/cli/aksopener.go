package cli

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
)

// openAKS asks the cloud, as provision does.
func (o *opener) openAKS(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	c, err := contract.Decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.parts(d.Text)
	p.asked = nil
	facts, err := p.facts(ctx, o.host)
	if err != nil {
		return nil, err
	}
	t, err := o.target(d, c, p, facts)
	if is[documentError](err) {
		err = o.refused(err)
	}
	return t, err
}
