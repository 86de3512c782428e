package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// TestALockWithoutALabelIsHeld: the device takes no byte, as a full /run does.
func TestALockWithoutALabelIsHeld(t *testing.T) {
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := h.Lock(t.Context(), "/dev/full", "first")
	if err != nil {
		t.Fatal(err)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	var locked *host.LockedError
	if _, err := h.Lock(now, "/dev/full", "second"); !errors.As(err, &locked) || locked.Holder != "another process" {
		t.Errorf("got %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
