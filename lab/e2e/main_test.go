// Package e2e holds the end-to-end tests: each joins real nodes to a real
// control plane. They share one lab. What needs systemd
// alone, or a kernel of its own, is in packages beside this one.
package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(victim); name != "" {
		os.Exit(beVictim(name))
	}
	code := setup.Run(m)
	if err := os.RemoveAll(stored.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func addr(t *testing.T, s string) netip.Addr {
	t.Helper()
	a, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
