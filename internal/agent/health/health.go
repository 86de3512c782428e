// Package health looks after the programs without which a node is none: kubelet
// and containerd. Each is asked whether it is well and restarted when it has not
// been for a while.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
)

const (
	// every is between two questions, patience how long a program may be unwell
	// before it is restarted, as published. Each further restart waits twice as long.
	every    = 30 * time.Second
	patience = time.Minute
	longest  = 16 * time.Minute
	// lasting is how long a program has to be well until its restarts count no more.
	lasting = 10 * time.Minute
	// answer bounds a question, job a restart.
	answer = 10 * time.Second
	job    = 5 * time.Minute
)

// Systemd is the machine's.
type Systemd interface {
	Unit(ctx context.Context, name string) (host.UnitStatus, error)
	ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error)
	RestartUnit(ctx context.Context, name string) error
	ResetFailed(ctx context.Context, name string) error
}

// Recorder tells people.
type Recorder interface {
	Normal(reason, message string)
	Warning(reason, message string)
}

// Program is one that is looked after.
type Program struct {
	Systemd Systemd
	Events  Recorder
	// Name is the reason of its events: kubelet, containerd. Unit is its unit.
	Name, Unit string
	// Ask says why it is not well.
	Ask func(context.Context) error
	// Paused, if set and true: nothing is restarted, all is told.
	Paused func() bool

	// since is when it was found unwell, zero if it is well, wellSince the reverse;
	// restarts how often it was restarted since it was last well for long.
	since, wellSince time.Time
	restarts         int
	// busy: it is looked at.
	busy atomic.Bool
}

// Round looks after programs, all at one time: each question wakes the machine.
type Round struct {
	Systemd  Systemd
	Programs []*Program
}

// Run looks after the programs until ctx ends. One whose restart takes long keeps no
// other waiting.
func (r Round) Run(ctx context.Context) error {
	var looks sync.WaitGroup
	defer looks.Wait()
	for {
		units := r.list(ctx)
		for _, p := range r.Programs {
			if p.busy.CompareAndSwap(false, true) {
				looks.Go(func() { defer p.busy.Store(false); p.look(ctx, units[p.Unit]) })
			}
		}
		if !apiserver.Pause(ctx, every) {
			return nil
		}
	}
}

// list are the programs' units by their names. One that is an alias, or is not loaded,
// is not among them.
func (r Round) list(ctx context.Context) map[string]host.UnitStatus {
	names := make([]string, len(r.Programs))
	for i, p := range r.Programs {
		names[i] = p.Unit
	}
	listed, _ := r.Systemd.ListUnits(ctx, names...) // then each is asked for
	units := map[string]host.UnitStatus{}
	for _, u := range listed {
		units[u.Name] = u
	}
	return units
}

// look looks at the program, whose unit was listed as u.
func (p *Program) look(ctx context.Context, u host.UnitStatus) {
	if u = p.unit(ctx, u); isStarting(u) {
		return
	}
	if !isExpected(u) {
		p.since, p.wellSince, p.restarts = time.Time{}, time.Time{}, 0
		return
	}
	asking, cancel := context.WithTimeout(ctx, answer)
	err := p.Ask(asking)
	cancel()
	switch {
	case ctx.Err() != nil:
	case err == nil:
		p.well()
	case p.since.IsZero():
		p.since, p.wellSince = time.Now(), time.Time{}
		slog.Warn("health check", "program", p.Name, "error", err)
		p.Events.Warning(p.Name, fmt.Sprintf("%s is not well: %v", p.Name, err))
	case time.Since(p.since) >= p.waits():
		p.restart(ctx, err)
	}
}

// unit is the program's unit. It is listed, which costs less than to describe it, unless its
// name is an alias or it is not loaded.
func (p *Program) unit(ctx context.Context, listed host.UnitStatus) host.UnitStatus {
	if listed.Name != "" {
		return listed
	}
	u, err := p.Systemd.Unit(ctx, p.Unit)
	if err != nil {
		return host.UnitStatus{}
	}
	return u
}

// isStarting says that systemd has yet to say whether the program starts: a restart would
// end that start, of which the unit says how long it may take. Between two starts of a
// program that ends it is not.
func isStarting(u host.UnitStatus) bool {
	return u.ActiveState == "activating" && !strings.HasPrefix(u.SubState, "auto-restart")
}

// isExpected says whether the program should answer. One that is not installed, or that
// somebody stopped, is no business of a health check.
func isExpected(u host.UnitStatus) bool {
	return u.LoadState == "loaded" && u.ActiveState != "inactive" && u.ActiveState != "deactivating"
}

func (p *Program) well() {
	if !p.since.IsZero() {
		slog.Info("health check", "program", p.Name, "well", true)
		p.Events.Normal(p.Name, p.Name+" is well again")
	}
	p.since = time.Time{}
	if p.wellSince.IsZero() {
		p.wellSince = time.Now()
	}
	if time.Since(p.wellSince) >= lasting {
		p.restarts = 0
	}
}

func (p *Program) waits() time.Duration { return min(patience<<min(p.restarts, 10), longest) }

func (p *Program) restart(ctx context.Context, why error) {
	if p.Paused != nil && p.Paused() {
		return
	}
	unwell := time.Since(p.since).Round(time.Second)
	ctx, cancel := context.WithTimeout(ctx, job)
	defer cancel()
	err := errors.Join(p.Systemd.ResetFailed(ctx, p.Unit), p.Systemd.RestartUnit(ctx, p.Unit)) // a start limit must not keep it down
	p.restarts++
	p.since = time.Now()
	text := fmt.Sprintf("restarted %s, which was not well for %s: %v", p.Unit, unwell, why)
	if err != nil {
		text = fmt.Sprintf("restart of %s failed: %v; it was not well for %s: %v", p.Unit, err, unwell, why)
	}
	slog.Warn("health check", "program", p.Name, "restart", p.restarts, "error", why)
	p.Events.Warning(p.Name, text)
}
