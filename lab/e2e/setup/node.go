package setup

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// journalLines is how much of a node's journal a failed test shows.
const journalLines = 30

// AddNode boots a node that is removed when the test ends; if the test failed,
// the end of its journal is logged, after all that the test itself says.
func AddNode(t *testing.T, l *lab.Lab, c lab.NodeConfig) *lab.Node {
	t.Helper()
	n := CreateNode(t, l, c)
	if err := n.Start(Within(t, time.Minute)); err != nil {
		t.Fatalf("start node: %v", err)
	}
	return n
}

// CreateNode makes a node that has yet to boot, see AddNode.
func CreateNode(t *testing.T, l *lab.Lab, c lab.NodeConfig) *lab.Node {
	t.Helper()
	n, err := l.CreateNode(Within(t, time.Minute), c)
	if err != nil {
		t.Fatalf("create node: %v", err)
	}
	t.Cleanup(func() { RemoveNode(t, n) })
	return n
}

// RemoveNode stops a node and takes it away.
func RemoveNode(t *testing.T, n *lab.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if t.Failed() {
		t.Logf("journal of %s:\n%s", n.Name, n.Tail(ctx, journalLines))
	}
	if err := n.Remove(ctx); err != nil {
		t.Errorf("remove node: %v", err)
	}
}
