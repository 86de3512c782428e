package provision

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/join/drained"
	"github.com/berth-dev/berth/internal/report"
)

// Standing is how a machine stands. Its JSON keys are part of the interface.
type Standing struct {
	Version    string `json:"version"`
	InstanceID string `json:"instanceID,omitempty"`
	// Running is the run that goes on, if one does.
	Running *Progress `json:"running,omitempty"`
	// Applying is the command apply that goes on, if one does.
	Applying *Progress `json:"applying,omitempty"`
	// Provision is the last result.
	Provision Last           `json:"provision"`
	Units     []UnitStanding `json:"units"`
	// Join is how the last join ended, if there was one.
	Join *report.Join `json:"join,omitempty"`
	// Trial is the change that is not confirmed, if there is one.
	Trial *trial.Note `json:"trial,omitempty"`
	// TrialProblem says why nobody knows what is on trial, where that is so.
	TrialProblem string `json:"trialProblem,omitempty"`
	// TrialLeft is how long a person has to confirm it, by the machine's running time.
	TrialLeft string `json:"trialLeft,omitempty"`
	// Drained is the Node that berth has cordoned for a change, if it has.
	Drained *drained.Note `json:"drained,omitempty"`
	// LastRun is the last run that has a timeline, provision's or apply's, without
	// the timeline.
	LastRun *report.Timeline `json:"lastRun,omitempty"`
}

// UnitStanding is a unit in systemd's words; Active is its load state where it is
// not loaded.
type UnitStanding struct {
	Name    string `json:"name"`
	Active  string `json:"active"`
	Sub     string `json:"sub,omitempty"`
	Enabled string `json:"enabled,omitempty"`
	Since   string `json:"since,omitempty"`
}

// Stand looks at a machine; version is the program's.
func Stand(ctx context.Context, h host.Host, version string) (Standing, error) {
	last, err := LastResult(h)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Version: version, InstanceID: InstanceID(h), Provision: last}
	if s.Trial, err = trial.Load(h); err != nil {
		s.TrialProblem = err.Error()
	}
	if s.Drained, err = drained.Load(h); err != nil {
		return Standing{}, err
	}
	if s.Trial != nil && s.Trial.Waiting {
		if left, ok := s.Trial.Left(h); ok {
			s.TrialLeft = left.String()
		}
	}
	if p, ok := Underway(h); ok {
		s.Running = &p
	}
	if p, ok := Applying(h); ok {
		s.Applying = &p
	}
	s.Join = report.LoadJoin(h)
	for _, u := range []string{report.ServiceUnit, containerd.Unit, kubelet.Unit} {
		s.Units = append(s.Units, unitStanding(ctx, h, u))
	}
	if t, err := report.LoadTimeline(h, report.TimelinePath); err == nil {
		t.Spans = nil
		s.LastRun = t
	}
	return s, nil
}

func unitStanding(ctx context.Context, h host.Systemd, name string) UnitStanding {
	s, err := h.Unit(ctx, name)
	if errors.Is(err, host.ErrNoSystemd) {
		return UnitStanding{Name: name, Active: "unknown", Sub: host.ErrNoSystemd.Error()}
	}
	if err != nil {
		return UnitStanding{Name: name, Active: "unknown", Sub: err.Error()}
	}
	if s.LoadState != "loaded" {
		return UnitStanding{Name: name, Active: s.LoadState}
	}
	u := UnitStanding{Name: name, Active: s.ActiveState, Sub: s.SubState, Enabled: s.UnitFileState}
	if !s.ActiveEnter.IsZero() {
		u.Since = report.SystemdTime(s.ActiveEnter)
	}
	return u
}
