package drained

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// Timer starts what has the Node take pods again once kubelet runs. It is there where a
// restart of the machine took a change back: no run of berth is left that could do it, and
// at that time no cluster can be asked.
const Timer = "berth-uncordon.timer"

const (
	unitDir     = "/etc/systemd/system/"
	timerPath   = unitDir + Timer
	timerLink   = unitDir + "timers.target.wants/" + Timer
	servicePath = unitDir + "berth-uncordon.service"
)

// Arm has systemd end the drain in this boot, and in the next one where this one ends
// before. program is berth.
func Arm(ctx context.Context, h host.Host, program string) error {
	service := unitfile.Text(
		unitfile.In("Unit", "Description", "Have this node take pods again: the change that it was drained for was taken back",
			"ConditionPathExists", notePath, "After", kubelet.Unit+" network-online.target"),
		unitfile.In("Service", "Type", "oneshot", "ExecStart", unitfile.Word(program)+" node uncordon",
			"Restart", "on-failure", "RestartSec", "10")) // since systemd 244
	timer := unitfile.Text(
		unitfile.In("Unit", "Description", "Have this node take pods again once kubelet runs"),
		unitfile.In("Timer", "OnActiveSec", "1s", "AccuracySec", "1s"),
		unitfile.In("Install", "WantedBy", "timers.target"))
	_, err := host.MkdirAll(h, path.Dir(timerLink))
	for _, step := range []func() error{
		func() error {
			return host.WriteFile(h, servicePath, []byte(service), host.Attributes{Mode: 0o644})
		},
		func() error { return host.WriteFile(h, timerPath, []byte(timer), host.Attributes{Mode: 0o644}) },
		func() error { return errors.Join(ledger.RemoveIfThere(h, timerLink), h.Symlink(timerPath, timerLink)) },
		func() error { return h.SyncDir(path.Dir(timerLink)) },
		func() error { return h.DaemonReload(ctx) },
		func() error { return h.StartUnit(ctx, Timer) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return fmt.Errorf("have systemd end the drain: %w", err)
	}
	return nil
}

// Disarm takes away what Arm put there. The timer's own service may call it.
func Disarm(ctx context.Context, h host.Host) error {
	info, err := ledger.Lstat(h, timerPath)
	if err != nil || info == nil {
		return err
	}
	if err := h.StopUnit(ctx, Timer); err != nil {
		return fmt.Errorf("end %s: %w", Timer, err)
	}
	for _, p := range []string{timerLink, servicePath, timerPath} { // the timer last: it says that something is left
		if err := ledger.RemoveIfThere(h, p); err != nil {
			return fmt.Errorf("end %s: %w", Timer, err)
		}
	}
	return h.DaemonReload(ctx)
}
