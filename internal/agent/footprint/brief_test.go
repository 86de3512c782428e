package footprint

import (
	"runtime/debug"
	"testing"
)

// TestBrief: a program that ends soon collects seldom, unless its user says otherwise; one
// that stays keeps its memory small again.
func TestBrief(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for gogc, want := range map[string]int{"": growth, "50": 100} {
		t.Setenv("GOGC", gogc)
		debug.SetGCPercent(100)
		Brief()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%q: %d percent, want %d", gogc, got, want)
		}
	}
}
