//go:build vm

package vm

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"
)

func TestLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
	defer cancel()
	v := testVM(t, ctx, testImage(t))
	v.cfg.Append = os.Getenv("APP")
	for i := range 8 {
		off := v.SerialSize()
		b := time.Now()
		ok(t, v.Boot(ctx))
		_, err := v.WaitSerial(ctx, off, regexp.MustCompile(`Run /init as init process`))
		ok(t, err)
		t.Log(i, time.Since(b))
		ok(t, v.PowerCut())
	}
	d, _ := os.ReadFile(v.SerialLog())
	os.WriteFile("/tmp/labvm/loop.serial", d, 0o600)
}
