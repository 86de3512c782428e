package machine

import (
	"context"

	"github.com/berth-dev/berth/internal/host"
)

// absent is the service manager of another root.
type absent struct{}

// Unit implements host.Systemd.
func (absent) Unit(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{}, host.ErrNoSystemd
}

// NotFound implements host.Systemd.
func (absent) NotFound(context.Context, ...string) ([]string, error) { return nil, host.ErrNoSystemd }

// Loaded implements host.Systemd.
func (absent) Loaded(context.Context, string) (bool, error) { return false, host.ErrNoSystemd }

// State implements host.Systemd.
func (absent) State(context.Context, string) (host.UnitStatus, error) {
	return host.UnitStatus{}, host.ErrNoSystemd
}

// Invocation implements host.Systemd.
func (absent) Invocation(context.Context, string) (string, error) { return "", host.ErrNoSystemd }

// ListUnits implements host.Systemd.
func (absent) ListUnits(context.Context, ...string) ([]host.UnitStatus, error) {
	return nil, host.ErrNoSystemd
}

// DaemonReload implements host.Systemd.
func (absent) DaemonReload(context.Context) error { return host.ErrNoSystemd }

// ExpectJobs implements host.Systemd.
func (absent) ExpectJobs(context.Context) {}

// StartUnit implements host.Systemd.
func (absent) StartUnit(context.Context, string, ...string) error { return host.ErrNoSystemd }

// Enqueue implements host.Systemd.
func (absent) Enqueue(context.Context, string, string) error { return host.ErrNoSystemd }

// StopUnit implements host.Systemd.
func (absent) StopUnit(context.Context, string) error { return host.ErrNoSystemd }

// RestartUnit implements host.Systemd.
func (absent) RestartUnit(context.Context, string) error { return host.ErrNoSystemd }

// ReloadUnit implements host.Systemd.
func (absent) ReloadUnit(context.Context, string) error { return host.ErrNoSystemd }

// ResetFailed implements host.Systemd.
func (absent) ResetFailed(context.Context, string) error { return host.ErrNoSystemd }
