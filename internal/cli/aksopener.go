package cli

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
)

// openAKS asks the cloud, as provision does.
func (o *opener) openAKS(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	p := o.parts(d.Text)
	p.inquiry.Source.Asked = nil
	c, err := p.decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	facts, err := p.factsOfDecoded(ctx, o.host, func(converge.Span) {})
	if err != nil {
		return nil, err
	}
	t, err := o.target(d, c, p, facts)
	if contract.Blames(err) {
		err = o.refused(err)
	}
	return t, err
}
