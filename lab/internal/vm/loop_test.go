//go:build vm

package vm

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	v := testVM(t, ctx, testImage(t))
	st := stopwatch(t)
	ok(t, v.Boot(ctx))
	ok(t, v.WaitAgent(ctx))
	st("agent")
	must(t, ctx, v, "while ! systemctl is-active --quiet network-online.target; do sleep 0.1; done")
	must(t, ctx, v, "cloud-init status --wait")
	st("cloud-init done")
	t.Log(must(t, ctx, v, "systemd-analyze; cat /sys/devices/system/clocksource/clocksource0/current_clocksource; lsmod | wc -l; dmesg | grep -i -e tsc -e e400; systemctl --failed --no-legend"))
	for i := range 12 {
		if i > 1 {
			must(t, ctx, v, "systemctl is-system-running --wait || true")
		}
		off := v.SerialSize()
		b := time.Now()
		n := v.Resets()
		must(t, ctx, v, "systemctl --no-block reboot")
		ok(t, v.WaitReset(ctx, n))
		t1 := time.Since(b)
		ok(t, v.wait(ctx, "x", func() (bool, error) { return v.qemu.agentOpen, nil }))
		t2 := time.Since(b)
		ok(t, v.WaitAgent(ctx))
		t3 := time.Since(b)
		t.Log(i, t1, t2, t3)
		if t3 > 30*time.Second {
			d, _ := os.ReadFile(v.SerialLog())
			os.WriteFile("/tmp/labvm/slow.serial", d[off:], 0o600)
			t.Log(must(t, ctx, v, "journalctl -b -1 --no-pager -o short-monotonic| tail -150"))
			return
		}
	}
}
