package converge

import (
	"context"

	"github.com/berth-dev/berth/internal/desired"
)

// image imports while the units start: a pod that comes before its image waits
// for it, as for a pull.
func (p *planning) image(ctx context.Context, t *task, i *desired.Image) error {
	if p.opt.Offline {
		t.postpone(VerbImport, "imported on first boot")
		return nil
	}
	if p.opt.Images == nil {
		return errNoProvider
	}
	reason, err := p.opt.Images.Lacks(ctx, i)
	if err != nil || reason == "" {
		return err
	}
	t.act(VerbImport, reason, DisruptNone)
	t.live = func(ctx context.Context) error { return p.opt.Images.Import(ctx, i) }
	return nil
}
