package vm

import (
	"context"
	"os/exec"
)

// AddTap makes a tap device and plugs it into a bridge, both in the namespace
// of spawn. Linux allows 15 characters for a device name.
func AddTap(ctx context.Context, spawn Spawner, bridge, tap string) error {
	if err := spawn.run(exec.CommandContext(ctx, "ip", "tuntap", "add", "dev", tap, "mode", "tap")); err != nil {
		return err
	}
	return spawn.run(exec.CommandContext(ctx, "ip", "link", "set", tap, "master", bridge, "up"))
}

// DeleteTap removes what AddTap made.
func DeleteTap(ctx context.Context, spawn Spawner, tap string) error {
	return spawn.run(exec.CommandContext(ctx, "ip", "tuntap", "del", "dev", tap, "mode", "tap"))
}

// SetLink raises or drops the host's end of the cable: a partition the guest
// sees only as silence.
func SetLink(ctx context.Context, spawn Spawner, tap string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return spawn.run(exec.CommandContext(ctx, "ip", "link", "set", tap, state))
}
