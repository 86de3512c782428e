// Package vm holds the end-to-end tests on emulated machines, which have their own
// kernels. It is a program of its own with a lab of its own, and runs beside the
// others: each of its machines in turn has a core for itself.
package vm

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

func TestMain(m *testing.M) { os.Exit(setup.Run(m)) }
