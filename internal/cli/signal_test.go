package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

// TestSignals: each of them ends a command in order, and is named.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			continue // under nohup that is what was asked for, and stays so (os/signal)
		}
		ctx, stop := interruptible()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing happens", s)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, exitcode.ErrInterrupted) || !strings.Contains(cause.Error(), s.String()) {
			t.Errorf("%s: %v", s, cause)
		}
		stop()
	}
}
