//go:build vm

package vm

import (
	"context"
	"testing"
	"time"
)

func TestLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
	defer cancel()
	v := testVM(t, ctx, testImage(t))
	ok(t, v.Boot(ctx))
	for range 7 {
		ok(t, v.WaitAgent(ctx))
		must(t, ctx, v, "systemctl is-system-running --wait || true")
		b := time.Now()
		ok(t, v.Reboot(ctx))
		t.Log(time.Since(b), v.Resets())
	}
}
