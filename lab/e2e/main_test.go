// Package e2e holds the end-to-end tests: each joins real nodes to a real
// control plane. They share one lab.
package e2e

import (
	"context"
	"fmt"
	"net/netip"
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

func TestMain(m *testing.M) {
	if name := os.Getenv(victim); name != "" {
		os.Exit(beVictim(name))
	}
	code := m.Run()
	if shared.lab != nil {
		if err := shared.lab.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedLab starts the lab that the tests share, at the first call.
func sharedLab(t *testing.T) *lab.Lab {
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

// within is a context that ends with the test or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
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
