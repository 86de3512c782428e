package converge

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Remember reads the programs of a state that are new or that changed, so that
// later plans know them by their content: one that was only touched restarts
// nothing, one that changed with size and times kept is noticed. It takes some
// 0.1 s for each 100 MB and is meant for the time after a run, when nobody waits.
// After a run that was cut off it does nothing.
func (e *Engine) Remember(ctx context.Context, st *desired.State) error {
	if e.opt.Offline {
		return nil
	}
	return e.exclusively(ctx, func() error { return e.remember(ctx, st) })
}

func (e *Engine) remember(ctx context.Context, st *desired.State) error {
	led, err := e.ledger.Load(e.opt.Host)
	if err != nil || led.Owed != nil {
		return err
	}
	v := kind.NewView(kind.Options{Contents: &e.contents}, e.kinds, e.opt.Host, st, led)
	held := map[string]ledger.Held{}
	for _, r := range st.Resources {
		d, ok := e.kinds[r.Kind()].(kind.Downloader)
		if !ok {
			continue
		}
		for _, name := range d.Downloads(v, r) {
			if err := rememberOne(ctx, v, name, held); err != nil {
				return fmt.Errorf("remember %s: %w", name, err)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	return learn(v, held)
}

func rememberOne(ctx context.Context, v *kind.View, name string, held map[string]ledger.Held) error {
	e, known := v.Ledger.Entries[name]
	info, err := v.Lstat(name)
	if err != nil || info == nil || !known || !info.IsRegular() {
		return err
	}
	if info.Size <= kind.MaxRead && e.Mark == "" { // of the image, and read in each plan
		return nil
	}
	if e.Held != nil && e.Held.Seen == ledger.Seen(info) || e.Held == nil && e.Altered(info) {
		return nil
	}
	if !info.Settled(v.Host.Now()) {
		if err := v.Host.Sleep(ctx, host.Coarse); err != nil {
			return err
		}
	}
	sum, err := v.Digest(name, info)
	if err != nil {
		return err
	}
	now, err := v.Lstat(name)
	downloaded := e.Mark != "" && e.Held != nil
	if err != nil || now == nil || ledger.Seen(now) != ledger.Seen(info) || downloaded && e.Held.Sum != sum {
		return err // it changes, or it is not what was downloaded: the next run sees to it
	}
	held[name] = ledger.Held{Sum: sum, Seen: ledger.Seen(info)}
	return nil
}

// learn makes what programs hold known: in the notes of the kinds, then in the
// ledger.
func learn(v *kind.View, held map[string]ledger.Held) error {
	for _, l := range having[kind.Learner](v.Kinds) {
		if err := l.Learn(v.Host, held); err != nil {
			return err
		}
	}
	for name, h := range held {
		entry := v.Ledger.Entries[name]
		entry.Held = &h
		v.Ledger.Entries[name] = entry
	}
	return write(v)
}
