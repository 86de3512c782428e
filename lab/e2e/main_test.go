// Package e2e holds the end-to-end tests: each joins real nodes to a real
// control plane. They share one lab.
package e2e

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(victim); name != "" {
		os.Exit(beVictim(name))
	}
	os.Exit(setup.Run(m))
}

// journalLines is how much of a node's journal a failed test shows.
const journalLines = 30

// addNode boots a node that is removed when the test ends; if the test failed,
// the end of its journal is logged, after all that the test itself says.
func addNode(t *testing.T, l *lab.Lab, c lab.NodeConfig) *lab.Node {
	t.Helper()
	n, err := l.AddNode(within(t, time.Minute), c)
	if err != nil {
		t.Fatalf("add node: %v", err)
	}
	t.Cleanup(func() { removeNode(t, n) })
	return n
}

func removeNode(t *testing.T, n *lab.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if t.Failed() {
		t.Logf("journal of %s:\n%s", n.Name, n.Tail(ctx, journalLines))
	}
	if err := n.Remove(ctx); err != nil {
		t.Errorf("remove node: %v", err)
	}
}

func addr(t *testing.T, s string) netip.Addr {
	t.Helper()
	a, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
