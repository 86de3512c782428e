// Package setup is what the end-to-end tests of several packages share: one lab
// per test program, configurations, and checks of what a machine reports.
package setup

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

var shared struct {
	once sync.Once
	lab  *lab.Lab
	err  error
}

// Lab starts the lab that all tests of a program share, at the first call.
func Lab(t *testing.T) *lab.Lab {
	t.Helper()
	shared.once.Do(func() {
		name := fmt.Sprintf("e2e-%d", os.Getpid())
		shared.lab, shared.err = lab.Start(context.Background(), lab.Config{Name: name, WithoutBerth: os.Getenv("BERTH_LAB_PLAIN") != ""})
	})
	if shared.err != nil {
		t.Fatalf("start lab: %v", shared.err)
	}
	return shared.lab
}

// Run runs a program's tests and takes the lab down. It returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if shared.lab == nil {
		return code
	}
	if err := shared.lab.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// busy is what a machine that has much else to do gets beyond the usual time.
const busy = 90 * time.Second

// Within is a context that ends with the test, or after d and the time that a busy
// machine may lose: it ends what hangs, and says nothing about speed.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d+busy)
	t.Cleanup(cancel)
	return ctx
}
