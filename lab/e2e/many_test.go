package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestFiveNodesBootAtOnce proves that nodes can be added in parallel.
func TestFiveNodesBootAtOnce(t *testing.T) {
	l := sharedLab(t)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			n, err := l.AddNode(within(t, time.Minute), lab.NodeConfig{Name: fmt.Sprintf("many-%d", i), Flavour: lab.Bare, WithoutBerth: true})
			if err != nil {
				t.Errorf("add node: %v", err)
				return
			}
			t.Cleanup(func() { removeNode(t, n) })
			if v, err := n.WaitBooted(within(t, time.Minute)); err != nil || v != "running" {
				t.Errorf("boot of %s: %q %v", n.Name, v, err)
			}
		})
	}
	wg.Wait()
	t.Logf("all up after %.1f s", time.Since(start).Seconds())
}
