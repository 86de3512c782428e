package converge_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage lie: many small machines come and go.
func TestMain(m *testing.M) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}
