// Package systemd holds the end-to-end tests that need a machine with systemd and
// no cluster. It is a program of its own with a lab of its own: it can run beside the
// others.
package systemd

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

func TestMain(m *testing.M) { os.Exit(setup.Run(m)) }
