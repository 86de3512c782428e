package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Running reports whether the power is on.
func (v *VM) Running() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.qemu != nil
}

// Resets counts how often the guest has been reset since New, by its own
// reboot or by Reset. A Boot is not a reset.
func (v *VM) Resets() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.resets
}

// WaitReset returns when Resets exceeds n: read n before the reboot is asked
// for.
func (v *VM) WaitReset(ctx context.Context, n int) error {
	return v.wait(ctx, "a reset", func() (bool, error) {
		if v.qemu == nil {
			return false, ErrOff
		}
		return v.resets > n, nil
	})
}

// WaitOff returns when the power is off.
func (v *VM) WaitOff(ctx context.Context) error {
	return v.wait(ctx, "power off", func() (bool, error) { return v.qemu == nil, nil })
}

// PowerCut kills QEMU. What the guest has flushed (fsync, a journal commit)
// stays on the disk. Lost are the guest's memory, and with it its dirty pages,
// and new clusters of the overlay whose allocation was not flushed yet: so data
// that was written but not flushed may be there or not, in any order.
func (v *VM) PowerCut() error {
	v.mu.Lock()
	r := v.qemu
	v.mu.Unlock()
	if r == nil {
		return ErrOff
	}
	if err := r.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill qemu: %w", err)
	}
	<-r.exited
	return nil
}

// PowerDown presses the power button and waits until the guest has shut down.
func (v *VM) PowerDown(ctx context.Context) error {
	if err := v.command(ctx, "system_powerdown", nil, nil); err != nil {
		return err
	}
	return v.WaitOff(ctx)
}

// Reset presses the reset button: the guest starts again without a shutdown,
// but QEMU's own write cache survives, unlike with PowerCut.
func (v *VM) Reset(ctx context.Context) error {
	n := v.Resets()
	if err := v.command(ctx, "system_reset", nil, nil); err != nil {
		return err
	}
	return v.WaitReset(ctx, n)
}

// Close turns the power off without asking the guest. The disk stays.
func (v *VM) Close() error {
	err := v.PowerCut()
	if errors.Is(err, ErrOff) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(v.path("qemu.pid")))
}

func (v *VM) command(ctx context.Context, name string, args, out any) error {
	v.mu.Lock()
	r := v.qemu
	v.mu.Unlock()
	if r == nil || r.monitor == nil {
		return ErrOff
	}
	return r.monitor.do(ctx, name, args, out)
}

func (v *VM) event(r *running, e Event) {
	switch e.Name {
	case "RESET":
		v.update(func() { v.countReset(r, e.time()) })
	case "VSERPORT_CHANGE":
		var port struct {
			ID   string `json:"id"`
			Open bool   `json:"open"`
		}
		if json.Unmarshal(e.Data, &port) == nil && port.ID == "agent" {
			v.update(func() { r.agentOpen = port.Open })
		}
	}
}

// countReset takes resets in quick succession for one: the firmware, when it
// finds that it ran before, resets the machine again. No emulated guest gets to
// its own reboot so soon.
func (v *VM) countReset(r *running, at time.Time) {
	r.agentOpen = false
	if at.Sub(r.lastReset) > 5*time.Second {
		v.resets++
	}
	r.lastReset = at
}
