package agent

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// FeedWatchdog tells systemd's watchdog that the program lives, where it asks for that, until
// ctx ends.
func FeedWatchdog(ctx context.Context) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err == nil && every > 0 {
		go feed(ctx, every/2) // as systemd advises
	}
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
