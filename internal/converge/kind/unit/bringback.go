package unit

import (
	"cmp"
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

// startAgain starts a unit that stopped as a consequence, unless that needs what the state wants
// stopped, or what is gone.
func (s *systemd) startAgain(ctx context.Context, st host.UnitStatus) error {
	need, err := s.needed(ctx, st.Requires, func(st host.UnitStatus) string { return cmp.Or(s.wantedStopped(st), unstartable(st)) })
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
	for _, name := range st.Needs {
		if need := s.wantedStopped(host.UnitStatus{Name: name}); need != "" {
			s.remark(staysStopped(st.Name, need) + ": " + err.Error())
			return nil
		}
	}
	return &kind.UnitError{Unit: st.Name, Err: fmt.Errorf("start again what stopped as a consequence: %w", err)}
}

func staysStopped(name, need string) string { return name + " stays stopped: it needs " + need }

// needed is what is said of the first of some units, and of those that they need, however
// indirectly, that is not ""; "" where nothing is.
func (s *systemd) needed(ctx context.Context, names []string, say func(host.UnitStatus) string) (string, error) {
	seen := map[string]bool{}
	var visit func(names []string) (string, error)
	visit = func(names []string) (string, error) {
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			st, err := s.v.Host.Unit(ctx, name)
			if err != nil {
				return "", err
			}
			if said := say(st); said != "" {
				return said, nil
			}
			if said, err := visit(st.Requires); said != "" || err != nil {
				return said, err
			}
		}
		return "", nil
	}
	return visit(names)
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

// wantedStopped says of a unit that the state wants stopped what it is; "" of others.
func (s *systemd) wantedStopped(st host.UnitStatus) string {
	if u, ok := s.v.State.Lookup(desired.UnitID(st.Name)).(*desired.Unit); ok && u.Activation == desired.Stopped {
		return st.Name + ", which is not to run"
	}
	return ""
}

// unstartable says why systemd refuses to start what needs a unit; "" where it does not.
func unstartable(st host.UnitStatus) string {
	switch st.LoadState {
	case "not-found":
		return st.Name + ", which is not there"
	case "masked":
		return st.Name + ", which is masked"
	}
	return ""
}
