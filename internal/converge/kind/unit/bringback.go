package unit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// bringBack starts what ran before and stopped as a consequence of what was done
// to others. Of what systemd is about to start again itself it awaits that start.
func (r *run) bringBack(ctx context.Context) error {
	if r.v.Booting {
		return nil
	}
	for _, name := range r.revive {
		st, err := r.v.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if running(st) || pausing(st) || !loaded(st) {
			continue
		}
		start := r.startAgain
		if !down(st) {
			start = r.awaitStart
		}
		if err := start(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// startAgain starts a unit that stopped as a consequence, unless that needs what does not start.
func (r *run) startAgain(ctx context.Context, st host.UnitStatus) error {
	need, err := r.needed(ctx, st.Requires)
	if err != nil {
		return err
	}
	if need != "" {
		r.remark(st.Name + " stays stopped: it needs " + need)
		return nil
	}
	if err := r.v.Host.StartUnit(ctx, st.Name); err != nil {
		return &kind.UnitError{Unit: st.Name, Err: fmt.Errorf("start again what stopped as a consequence: %w", err)}
	}
	return nil
}

// needed describes the first of some units, and of those that they need, however indirectly, that
// does not start; "" where all do.
func (r *run) needed(ctx context.Context, names []string) (string, error) {
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		st, err := r.v.Host.Unit(ctx, name)
		if err != nil {
			return "", err
		}
		if why := r.unstartable(st); why != "" {
			return why, nil
		}
		names = slices.Concat(names, st.Requires)
	}
	return "", nil
}

// unstartable describes a unit that the state wants stopped, or that systemd refuses to start; ""
// where it is neither.
func (r *run) unstartable(st host.UnitStatus) string {
	u, ok := r.v.State.Lookup(desired.UnitID(st.Name)).(*desired.Unit)
	switch {
	case ok && u.Activation == desired.Stopped:
		return st.Name + ", which is not to run"
	case st.LoadState == "not-found":
		return st.Name + ", which is not there"
	case st.LoadState == "masked":
		return st.Name + ", which is masked"
	}
	return ""
}

// comesUp is how long a run waits for a unit of somebody else that systemd starts again.
const comesUp = time.Minute

// awaitStart joins the start of a unit that systemd has begun along with another's.
func (r *run) awaitStart(ctx context.Context, st host.UnitStatus) error {
	bounded, cancel := context.WithTimeoutCause(ctx, comesUp, &host.BoundError{After: comesUp})
	defer cancel()
	err := r.v.Host.StartUnit(bounded, st.Name)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && bounded.Err() != nil {
		r.remark(st.Name + ", which systemd starts again along with another unit, is not up yet: " + err.Error())
		return nil
	}
	return &kind.UnitError{Unit: st.Name, Err: fmt.Errorf("start again along with another unit: %w", err)}
}
