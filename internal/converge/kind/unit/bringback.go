package unit

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// bringBack starts what ran before and stopped as a consequence of what was done
// to others. Of what systemd is about to start again itself it awaits that start.
func (s *systemd) bringBack(ctx context.Context) error {
	if s.v.Booting {
		return nil
	}
	for _, name := range s.revive {
		st, err := s.v.Host.Unit(ctx, name)
		if err != nil {
			return err
		}
		if running(st) || pausing(st) || st.LoadState != "loaded" {
			continue
		}
		if !down(st) {
			if err := s.awaitStart(ctx, name); err != nil {
				return &kind.UnitError{Unit: name, Err: err}
			}
			continue
		}
		if err := s.startAgain(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// startAgain starts a unit that stopped as a consequence, unless that started along what the
// state wants stopped.
func (s *systemd) startAgain(ctx context.Context, st host.UnitStatus) error {
	need, err := s.wantedDown(ctx, st)
	if err != nil {
		return err
	}
	if need != "" {
		s.remark(staysStopped(st.Name, need))
		return nil
	}
	err = s.v.Host.StartUnit(ctx, st.Name)
	if err == nil {
		return nil
	}
	if need := s.wantedStopped(st.Needs); need != "" {
		s.remark(staysStopped(st.Name, need) + ": " + err.Error())
		return nil
	}
	return &kind.UnitError{Unit: st.Name, Err: fmt.Errorf("start again what stopped as a consequence: %w", err)}
}

func staysStopped(name, need string) string {
	return name + " stays stopped: it needs " + need + ", which is not to run"
}

// wantedDown is a unit that the state wants stopped and that a start of another would start
// along, however indirectly; "" for none.
func (s *systemd) wantedDown(ctx context.Context, st host.UnitStatus) (string, error) {
	seen := map[string]bool{}
	var visit func(names []string) (string, error)
	visit = func(names []string) (string, error) {
		if need := s.wantedStopped(names); need != "" {
			return need, nil
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			st, err := s.v.Host.Unit(ctx, name)
			if err != nil {
				return "", err
			}
			if need, err := visit(st.Requires); need != "" || err != nil {
				return need, err
			}
		}
		return "", nil
	}
	return visit(st.Requires)
}

// comesUp is how long a run waits for a unit of somebody else that systemd starts again.
const comesUp = time.Minute

// awaitStart joins the start of a unit that systemd has begun along with another's.
func (s *systemd) awaitStart(ctx context.Context, name string) error {
	bounded, cancel := context.WithTimeoutCause(ctx, comesUp, &host.BoundError{After: comesUp})
	defer cancel()
	err := s.v.Host.StartUnit(bounded, name)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && bounded.Err() != nil {
		s.remark(name + ", which systemd starts again along with another unit, is not up yet: " + err.Error())
		return nil
	}
	return fmt.Errorf("start again along with another unit: %w", err)
}

// wantedStopped is the first of some units that the state wants stopped; "" for none.
func (s *systemd) wantedStopped(names []string) string {
	for _, name := range names {
		if u, ok := s.v.State.Lookup(desired.UnitID(name)).(*desired.Unit); ok && u.Activation == desired.Stopped {
			return name
		}
	}
	return ""
}
