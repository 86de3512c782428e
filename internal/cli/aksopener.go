package cli

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// newOpener makes what turns documents of a source into targets.
func newOpener(e *env, h host.Host, src agent.Source, secrets agent.SecretReader, try bool) reconcile.Opener {
	o := newOSCOpener(e, h, secrets, try)
	o.file = src.File
	if src.Owner == desired.OwnerAKS {
		return &aksOpener{o}
	}
	return o
}

// aksOpener turns AKS documents of a file into targets.
type aksOpener struct{ *oscOpener }

// Open implements reconcile.Opener.
func (o *aksOpener) Open(ctx context.Context, d *reconcile.Document) (*reconcile.Target, error) {
	c, err := contract.Decode(d.Text)
	if err != nil {
		return nil, o.refused(err)
	}
	if c.Kind() != contract.AKS {
		return nil, o.refused(fmt.Errorf("the document is a %s, want a %s", c.Kind(), contract.AKS))
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

// LastGood implements reconcile.Opener.
func (o *aksOpener) LastGood(context.Context) (*reconcile.Target, error) {
	return o.good(desired.OwnerAKS)
}
