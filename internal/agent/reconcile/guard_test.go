package reconcile

import (
	"testing"
	"time"
)

func TestGuard(t *testing.T) {
	g := newGuard(3, time.Minute, 10*time.Minute)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pass := func(d time.Duration, storm bool) {
		t.Helper()
		at = at.Add(d)
		if got := g.note("file:/x", at); got != storm {
			t.Errorf("after %s: %v", d, got)
		}
	}
	pass(0, false)
	pass(59*time.Second, false)
	pass(2*time.Second, false) // the first is too long ago
	pass(time.Second, true)
	if !g.stands("file:/x", at.Add(9*time.Minute)) || g.stands("file:/x", at.Add(10*time.Minute)) || g.stands("file:/y", at) {
		t.Error("it holds back the wrong thing, or for the wrong time")
	}
	pass(time.Second, false) // told once
	pass(11*time.Minute, false)
}
