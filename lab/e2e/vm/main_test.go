// Package vm holds the end-to-end test on an emulated machine, which has its own
// kernel. It is a program of its own with a lab of its own: it can run beside the
// others.
package vm

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

func TestMain(m *testing.M) { os.Exit(setup.Run(m)) }
