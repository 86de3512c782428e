package provision

import (
	"context"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// broken is a machine with a defect: it panics in one call.
type broken struct {
	host.Host
	at string
}

func (b broken) panics(at string) {
	if b.at == at {
		panic("a defect")
	}
}

func (b broken) ReadFile(p string) ([]byte, error) {
	b.panics("read " + p)
	return b.Host.ReadFile(p)
}

func (b broken) Remove(p string) error {
	b.panics("remove " + p)
	return b.Host.Remove(p)
}

func (b broken) Symlink(target, p string) error {
	b.panics("symlink " + p)
	return b.Host.Symlink(target, p)
}

func (b broken) Run(ctx context.Context, c host.Command) (host.Output, error) {
	b.panics("run " + c.Path)
	return b.Host.Run(ctx, c)
}

func (b broken) SyncFS(string) error {
	b.panics("sync")
	return nil
}

// TestEveryPanicHasAResult: whoever waits is told, wherever it happens.
func TestEveryPanicHasAResult(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		code int
	}{
		"what ended before": {"read " + report.SentinelPath, exitcode.Internal},
		"room for a result": {"remove " + report.SentinelPath, exitcode.Internal},
		"apply":             {"apply", exitcode.Internal},
		"the result itself": {"run /usr/bin/systemctl", exitcode.Internal},
		"after the result":  {"symlink " + report.ClusterLog, 0},
		"the disk's sync":   {"sync", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{}`)
			b := broken{h, c.at}
			o := options(b)
			apply := o.Apply
			o.Apply = func(ctx context.Context, st *desired.State, ob converge.Observer) (*converge.Result, error) {
				b.panics("apply")
				return apply(ctx, st, ob)
			}
			if code := Provision(t.Context(), o); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
			d := result(t, h, report.ResultPath)
			if c.code != 0 && (d.ExitCode != "240" || !strings.Contains(d.Error, "panic: a defect")) || c.code == 0 && d.ExitCode != "0" {
				t.Errorf("result %s: %s", d.ExitCode, d.Error)
			}
			if _, err := h.Lstat(report.SentinelPath); err != nil {
				t.Error(err)
			}
		})
	}
}
