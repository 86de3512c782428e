package effect

import (
	"context"

	"github.com/berth-dev/berth/internal/host"
)

// Unit implements host.Systemd.
func (d *decorated) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	return read(d, func() (host.UnitStatus, error) { return d.inner.Unit(ctx, name) })
}

// Loaded implements host.Systemd.
func (d *decorated) Loaded(ctx context.Context, name string) (bool, error) {
	return read(d, func() (bool, error) { return d.inner.Loaded(ctx, name) })
}

// NotFound implements host.Systemd.
func (d *decorated) NotFound(ctx context.Context, names ...string) ([]string, error) {
	return read(d, func() ([]string, error) { return d.inner.NotFound(ctx, names...) })
}

// State implements host.Systemd.
func (d *decorated) State(ctx context.Context, name string) (host.UnitStatus, error) {
	return read(d, func() (host.UnitStatus, error) { return d.inner.State(ctx, name) })
}

// Invocation implements host.Systemd.
func (d *decorated) Invocation(ctx context.Context, name string) (string, error) {
	return read(d, func() (string, error) { return d.inner.Invocation(ctx, name) })
}

// ListUnits implements host.Systemd.
func (d *decorated) ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error) {
	return read(d, func() ([]host.UnitStatus, error) { return d.inner.ListUnits(ctx, patterns...) })
}

// DaemonReload implements host.Systemd.
func (d *decorated) DaemonReload(ctx context.Context) error {
	return d.do("daemon-reload", "", "", func() error { return d.inner.DaemonReload(ctx) })
}

// ExpectJobs implements host.Systemd.
func (d *decorated) ExpectJobs(ctx context.Context) { d.inner.ExpectJobs(ctx) }

// StartUnit implements host.Systemd.
func (d *decorated) StartUnit(ctx context.Context, name string, ahead ...string) error {
	return d.do("start", name, "", func() error { return d.inner.StartUnit(ctx, name, ahead...) })
}

// Enqueue implements host.Systemd.
func (d *decorated) Enqueue(ctx context.Context, job, name string) error {
	return d.do(job, name, "", func() error { return d.inner.Enqueue(ctx, job, name) })
}

// StopUnit implements host.Systemd.
func (d *decorated) StopUnit(ctx context.Context, name string) error {
	return d.do("stop", name, "", func() error { return d.inner.StopUnit(ctx, name) })
}

// RestartUnit implements host.Systemd.
func (d *decorated) RestartUnit(ctx context.Context, name string) error {
	return d.do("restart", name, "", func() error { return d.inner.RestartUnit(ctx, name) })
}

// ReloadUnit implements host.Systemd.
func (d *decorated) ReloadUnit(ctx context.Context, name string) error {
	return d.do("reload", name, "", func() error { return d.inner.ReloadUnit(ctx, name) })
}

// ResetFailed implements host.Systemd.
func (d *decorated) ResetFailed(ctx context.Context, name string) error {
	return d.do("reset-failed", name, "", func() error { return d.inner.ResetFailed(ctx, name) })
}
