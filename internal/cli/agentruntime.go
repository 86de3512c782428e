package cli

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/berth-dev/berth/internal/agent/footprint"
)

// resident prepares the program for a long life: bounded memory, and a sign of life
// for systemd where that asks for one. worked is to be called after work.
func resident(ctx context.Context) (worked func()) {
	f := footprint.Keep()
	every, err := daemon.SdWatchdogEnabled(false)
	if err == nil && every > 0 {
		go feed(ctx, every/2) // as systemd advises
	}
	return f.Worked
}

// feed tells systemd's watchdog that the program lives.
func feed(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
