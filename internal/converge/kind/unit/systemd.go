package unit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// systemd is what all units of one run share.
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
	// revive are units that ran and that may stop as a consequence.
	revive []string
	// watched are services that this run started and that count as up as soon as
	// their process exists.
	watched []host.UnitStatus
	remarks []string
}

func systemdOf(v *kind.View) *systemd {
	return v.Shared("systemd", func() any {
		return &systemd{v: v, asked: map[string]host.UnitStatus{}, since: map[string]host.UnitStatus{}}
	}).(*systemd)
}

// unit describes a unit. To ask for one makes systemd load it: which it had loaded
// is asked first.
func (s *systemd) unit(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := s.list(ctx); err != nil {
		return host.UnitStatus{}, err
	}
	s.mu.Lock()
	st, ok := s.asked[name]
	s.mu.Unlock()
	if ok {
		return st, nil
	}
	st, err := s.v.Host.Unit(ctx, name)
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
	patterns := map[string]bool{}
	for _, r := range s.v.Covered() {
		if name, ok := strings.CutPrefix(string(r.ID()), "unit:"); ok {
			patterns[name] = true
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
	return s.listMissing(ctx)
}

// listMissing asks once which of the units that the plan covers are not there yet, as all
// of a first document's are.
func (s *systemd) listMissing(ctx context.Context) error {
	var names []string
	for _, r := range s.v.Covered() {
		name, ok := strings.CutPrefix(string(r.ID()), "unit:")
		if _, known := s.known[name]; ok && !known && !unitname.IsTemplate(name) {
			names = append(names, name)
		}
	}
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
func (s *systemd) concerned(ctx context.Context, p part) ([]host.UnitStatus, error) {
	var out []host.UnitStatus
	if p.role == dropIn {
		real, err := s.leadsTo(p.of)
		if err != nil {
			return nil, err
		}
		if real != "" {
			return s.loaded(ctx, real)
		}
	}
	for _, name := range sorted(s.known) {
		if p.concerns(name) && s.known[name].LoadState != "not-found" {
			out = append(out, s.known[name])
		}
	}
	return out, nil
}

// loaded is a unit, if systemd has loaded it.
func (s *systemd) loaded(ctx context.Context, name string) ([]host.UnitStatus, error) {
	if loaded, err := s.v.Host.Loaded(ctx, name); err != nil || !loaded {
		return nil, err
	}
	st, err := s.unit(ctx, name)
	return []host.UnitStatus{st}, err
}

// leadsTo is the unit of which a name is another one, by a link; "" where it is not.
func (s *systemd) leadsTo(name string) (string, error) {
	if _, known := s.known[name]; known || !isUnit(name) {
		return "", nil
	}
	for _, dir := range dirs {
		info, err := s.v.Lstat(dir + "/" + name)
		if err != nil {
			return "", err
		}
		if info == nil {
			continue
		}
		if info.Mode&fs.ModeSymlink == 0 {
			return "", nil
		}
		target, err := s.v.Host.Readlink(dir + "/" + name)
		if real := path.Base(target); err != nil || real != name && isUnit(real) {
			return real, err
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

// remark adds to what the run says in the end.
func (s *systemd) remark(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remarks = append(s.remarks, text)
}

// started notes how a unit was described after its start.
func (s *systemd) started(name string, st host.UnitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[name] = st
}

// comesBack notes a unit that is stopped and starts again in the end.
func (s *systemd) comesBack(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.revive, name) {
		s.revive = append(s.revive, name)
	}
}

// watch notes a service whose start says nothing of whether it works.
func (s *systemd) watch(st host.UnitStatus) {
	if !slices.Contains([]string{"simple", "exec", "idle"}, st.ServiceType) || !running(st) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = append(s.watched, st)
}

// upFor is how long a service has to stay up, where systemd calls it started as
// soon as its process exists.
const upFor = 200 * time.Millisecond

// confirm looks whether such services are still up.
func (s *systemd) confirm(ctx context.Context) error {
	var left time.Duration
	for _, was := range s.watched {
		if !was.ExecMainStart.IsZero() {
			left = max(left, min(upFor, upFor-s.v.Host.Now().Sub(was.ExecMainStart)))
		}
	}
	if left > 0 {
		if err := s.v.Host.Sleep(ctx, left); err != nil {
			return err
		}
	}
	g, down := errgroup.Group{}, make([]error, len(s.watched))
	g.SetLimit(questions)
	for i, was := range s.watched {
		g.Go(func() error { down[i] = s.stillUp(ctx, was); return nil })
	}
	_ = g.Wait()
	return errors.Join(down...)
}

// questions is how many units systemd is asked for at once.
const questions = 16

func (s *systemd) stillUp(ctx context.Context, was host.UnitStatus) error {
	st, err := s.v.Host.State(ctx, was.Name)
	if err != nil {
		return err
	}
	result := cmp.Or(st.Result, "failed")
	switch {
	case st.NRestarts > was.NRestarts, pausing(st), st.ActiveState == "failed":
	case st.ActiveState == "inactive":
		result = "ended"
	default:
		return nil
	}
	return &kind.UnitError{Unit: was.Name, Err: fmt.Errorf("it started and ended again: %w", &host.JobError{Unit: was.Name, Job: "start", Result: result, Status: st})}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
