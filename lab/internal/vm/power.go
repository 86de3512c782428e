package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
		if v.resets > n {
			return true, nil
		}
		return false, v.offReason()
	})
}

// offReason is nil while the power is on.
func (v *VM) offReason() error {
	if v.qemu != nil {
		return nil
	}
	return errors.Join(ErrOff, v.failure)
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
	if r == nil {
		v.mu.Unlock()
		return ErrOff
	}
	r.cut = true
	var err error
	if r.process != nil {
		err = r.process.Kill()
	}
	v.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill qemu: %w", err)
	}
	<-r.off
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
	var m *monitor
	if v.qemu != nil {
		m = v.qemu.monitor
	}
	v.mu.Unlock()
	if m == nil {
		return ErrOff
	}
	return m.do(ctx, name, args, out)
}

func (v *VM) event(r *running, e Event) {
	var data struct {
		ID     string `json:"id"`
		Open   bool   `json:"open"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return // an event without data is none of these
	}
	switch {
	case e.Name == "SHUTDOWN" && (data.Reason == "guest-reset" || data.Reason == "host-qmp-system-reset"):
		v.update(func() { r.again = true })
	case e.Name == "VSERPORT_CHANGE" && data.ID == "agent":
		v.update(func() { r.agentOpen = data.Open })
	}
}
