package converge

import (
	"context"
	"path"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// distrust plans the bundle's making without an anchor that goes, or that went
// in a run which was cut off before it came to that: its ledger entry is there
// until this has happened.
func (p *planning) distrust(t *task, name string) {
	store, err := p.trustStore()
	if err != nil || path.Dir(name) != store.anchors {
		return
	}
	t.id = desired.TrustAnchorID(path.Base(name[:len(name)-len(path.Ext(name))]))
	p.tasks = append(p.tasks, t)
	if p.opt.Offline {
		t.postpone(VerbUpdate, "the bundle is rebuilt on first boot")
		return
	}
	t.act(VerbUpdate, "no longer wanted in "+store.bundle, DisruptNone)
	t.remade = append(t.remade, p.target(store.bundle))
	t.live = func(ctx context.Context) error { return p.unbundle(ctx, store, string(t.id)) }
}

// unbundle rebuilds the bundle from the anchors that are left, once in a run.
func (p *planning) unbundle(ctx context.Context, store trustStore, name string) error {
	p.bundling.Lock()
	defer p.bundling.Unlock()
	if p.rebuilt {
		return nil
	}
	if _, err := p.h.Run(ctx, host.Command{Path: store.command}); err != nil {
		return &TrustError{Name: name, Err: err}
	}
	p.rebuilt = true
	data, _, err := readFile(p.h, store.bundle)
	if err != nil {
		return &TrustError{Name: name, Err: err}
	}
	return p.keepBundle(p.target(store.bundle), data)
}
