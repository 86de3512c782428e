package vm

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// SaveState stores memory, devices and disk of the running machine under a
// name, inside its own disk. A test that needs many runs from the same moment
// boots once and returns here with BootState.
func (v *VM) SaveState(ctx context.Context, name string) error {
	v.mu.Lock()
	agent := v.qemu != nil && v.qemu.agentOpen
	v.mu.Unlock()
	var said string
	line := map[string]string{"command-line": "savevm " + name}
	if err := v.command(ctx, "human-monitor-command", line, &said); err != nil {
		return err
	}
	if said = strings.TrimSpace(said); said != "" {
		return fmt.Errorf("save state %s: %s", name, said)
	}
	v.update(func() { v.saved[name] = agent })
	return nil
}

// BootState turns the power on in a saved state. What the disk got since then
// is lost. The guest's clock is set to the present.
func (v *VM) BootState(ctx context.Context, name string) error {
	v.mu.Lock()
	agent, ok := v.saved[name]
	v.mu.Unlock()
	if !ok {
		return fmt.Errorf("boot state %s: no such state", name)
	}
	if err := v.boot(ctx, "-loadvm", name); err != nil {
		return err
	}
	if !agent {
		return nil
	}
	v.update(func() {
		if v.qemu != nil {
			v.qemu.agentOpen = true
		}
	})
	return v.agent(ctx, "guest-set-time", map[string]int64{"time": time.Now().UnixNano()}, nil)
}
