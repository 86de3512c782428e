package machine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// TestAProgramThatHangsEnds: without a deadline at the bound, and else at the
// deadline, which may be later.
func TestAProgramThatHangsEnds(t *testing.T) {
	bound := processes{20 * time.Millisecond}
	_, err := bound.Run(t.Context(), host.Command{Path: "sleep", Args: []string{"60"}})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sleep: has not ended within 20ms") {
		t.Errorf("without a deadline: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := bound.Run(ctx, host.Command{Path: "sleep", Args: []string{"0.1"}}); err != nil {
		t.Errorf("with a deadline: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := bound.Run(stopped, host.Command{Path: "sleep", Args: []string{"60"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
