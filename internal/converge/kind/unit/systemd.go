package unit

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// systemd is what it has loaded of units, and whether it has read what changed.
type systemd struct {
	v *kind.View

	mu sync.Mutex
	// known is what systemd had loaded before anybody asked for a unit, by name.
	known map[string]host.UnitStatus
	// asked are the units that the plan asked for, once: systemd may hold what it read
	// of them for a while.
	asked map[string]host.UnitStatus
	// since has the states of units after this run had started them: with what systemd had
	// read then.
	since map[string]host.UnitStatus
	// stale: systemd has to read definitions again; reloaded: it has, since the names
	// changed.
	stale, reloaded bool
}

// unit describes a unit. To ask for one makes systemd load it: which it had loaded
// is asked first.
func (s *systemd) unit(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := s.list(ctx); err != nil {
		return host.UnitStatus{}, err
	}
	s.mu.Lock()
	st, ok := s.asked[name]
	_, known := s.known[name]
	s.mu.Unlock()
	if ok {
		return st, nil
	}
	if ahead := s.v.UnitAhead; ahead != nil && !known { // one that is loaded may do something else by now
		st, ok = ahead(ctx, name)
	}
	var err error
	if !ok {
		st, err = s.v.Host.Unit(ctx, name)
	}
	if err == nil {
		s.mu.Lock()
		s.asked[name] = st
		s.mu.Unlock()
	}
	return st, err
}

// list asks once what of all that the plan may concern systemd has loaded.
func (s *systemd) list(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil {
		return nil
	}
	patterns, covered := map[string]bool{}, []string{}
	for _, r := range s.v.Covered() {
		if name, ok := strings.CutPrefix(string(r.ID()), "unit:"); ok {
			patterns[name], covered = true, append(covered, name)
		}
	}
	for _, name := range s.touched() {
		if p, ok := partOf(name); ok {
			patterns[p.pattern()] = true
		}
	}
	s.known = map[string]host.UnitStatus{}
	if len(patterns) == 0 {
		return nil
	}
	units, err := s.v.Host.ListUnits(ctx, sorted(patterns)...)
	for _, u := range units {
		s.known[u.Name] = u
	}
	if err != nil {
		return err
	}
	return s.listMissing(ctx, covered)
}

// listMissing asks once which of the units that the plan covers are not there yet, as all
// of a first document's are.
func (s *systemd) listMissing(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { _, known := s.known[name]; return known || unitname.IsTemplate(name) })
	if len(names) == 0 {
		return nil
	}
	missing, err := s.v.Host.NotFound(ctx, names...)
	for _, name := range missing {
		s.asked[name] = host.UnitStatus{Name: name, ID: name, Names: []string{name}, LoadState: "not-found", ActiveState: "inactive", SubState: "dead"}
	}
	return err
}

// touched are all names that change, or that changed in a run that was cut off.
func (s *systemd) touched() []string {
	out := append(s.v.ChangedNames(), s.v.Vanished()...)
	if o := s.v.Owed; o != nil {
		out = append(out, o.Definitions...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// concerned are the units that systemd has loaded and that a part concerns. It lists them by
// their real names.
func (s *systemd) concerned(ctx context.Context, p part) (out []string, err error) {
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	if p.role == dropIn {
		if real, err := s.leadsTo(p.of); err != nil || real != "" {
			there := false
			if err == nil {
				there, err = s.v.Host.Loaded(ctx, real)
			}
			if there {
				out = append(out, real)
			}
			return out, err
		}
	}
	for _, name := range sorted(s.known) {
		if p.concerns(name) && s.known[name].LoadState != "not-found" {
			out = append(out, name)
		}
	}
	return out, nil
}

// leadsTo is the unit of which a name is another one, by a link; "" where it is not.
func (s *systemd) leadsTo(name string) (string, error) {
	if _, known := s.known[name]; known || !isUnit(name) {
		return "", nil
	}
	for _, at := range places(name) {
		info, err := s.v.Lstat(at)
		if err != nil {
			return "", err
		}
		if info == nil {
			continue
		}
		target, err := s.v.Host.Readlink(at)
		if real := path.Base(target); err == nil && real != name && isUnit(real) {
			return real, nil
		}
		return "", nil
	}
	return "", nil
}

// outdated notes that systemd has to read definitions again.
func (s *systemd) outdated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// current makes systemd read the definitions, if they have changed and nobody
// has since.
func (s *systemd) current(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stale || s.reloaded {
		return nil
	}
	return s.reloadNow(ctx)
}

// reload makes systemd read the definitions.
func (s *systemd) reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloadNow(ctx)
}

func (s *systemd) reloadNow(ctx context.Context) error {
	err := s.v.Host.DaemonReload(ctx)
	s.reloaded = err == nil
	return err
}

// readAll makes systemd read what it holds an older version of, of all that
// changed.
func (s *systemd) readAll(ctx context.Context, names []string) error {
	if err := s.current(ctx); err != nil || s.reloaded {
		return err
	}
	for _, name := range sorted(s.asked) {
		concerned := slices.ContainsFunc(names, func(n string) bool { p, _ := partOf(n); return p.role != wantedLink && p.concerns(name) })
		if !concerned {
			continue
		}
		st, started := s.since[name]
		if !started {
			var err error
			if st, err = s.v.Host.Unit(ctx, name); err != nil {
				return errors.Join(err, s.reload(ctx))
			}
		}
		if st.NeedDaemonReload {
			return s.reload(ctx)
		}
	}
	return nil
}

// started notes how a unit was described after its start.
func (s *systemd) started(name string, st host.UnitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[name] = st
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
