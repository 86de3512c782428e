package documents

import (
	"context"

	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
)

// openAKS asks the cloud, as provision does.
func (o *Opener) openAKS(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	c, err := contract.Decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	p := o.Providers()
	facts, err := p.Inquiry.FactsReferred(ctx, contract.ReferencesOf(c), func(converge.Span) {})
	if err != nil {
		return nil, err
	}
	t, err := p.target(d, Applied{Text: d.Text, Contract: c, Facts: facts})
	if contract.Blames(err) {
		err = o.refused(err)
	}
	return t, err
}
