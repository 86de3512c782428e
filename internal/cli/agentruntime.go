package cli

import (
	"context"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/footprint"
)

// resident prepares the program for a long life: bounded memory, and a sign of life
// for systemd where that asks for one. worked is to be called after work.
func resident(ctx context.Context) (worked func()) {
	f := footprint.Keep()
	agent.FeedWatchdog(ctx)
	return f.Worked
}
