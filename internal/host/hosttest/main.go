package hosttest

import (
	"os"
	"runtime/debug"
	"testing"
)

// Main runs the tests of a package in which many small machines come and go, and ends the
// program: garbage lies until there is a gigabyte of it.
func Main(m *testing.M) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}
