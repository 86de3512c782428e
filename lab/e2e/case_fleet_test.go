package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

// TestCaseFleet boots five nodes at once. Pods of two of them talk.
func TestCaseFleet(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	start := time.Now()
	nodes := make([]*lab.Node, 5)
	statuses := make([]func() setup.Extension, len(nodes))
	userData := customData(t, nodeConfig(t, l))
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			n, err := l.AddNode(within(t, time.Minute), lab.NodeConfig{Name: fmt.Sprintf("case-fleet-%d", i), UserData: userData, Files: reg.trust()})
			if err != nil {
				t.Errorf("add node: %v", err)
				return
			}
			t.Cleanup(func() { removeNode(t, n) })
			nodes[i], statuses[i] = n, runCSE(t, n)
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, n := range nodes {
		if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
			t.Fatal(err)
		}
		checkStatus(t, statuses[i]())
	}
	t.Logf("all Ready after %.1f s", time.Since(start).Seconds())
	talk(t, l, reg, nodes[0], nodes[4])
}

// talk lets a pod of one node ask a pod of another over HTTP, both ways.
func talk(t *testing.T, l *lab.Lab, reg *images, a, b *lab.Node) {
	t.Helper()
	pods := map[string]string{}
	for _, n := range []*lab.Node{a, b} {
		name := "talk-" + n.Name
		pods[name] = runWorkload(t, l, reg.workload, name, n.Name).Status.PodIP
	}
	for from := range pods {
		for to, ip := range pods {
			got := kubectl(t, l, "exec", from, "--", "/workload", "get", "http://"+ip+":8080/")
			if want := "hello from " + to + "\n"; got != want {
				t.Errorf("%s asked %s: %q, want %q", from, to, got, want)
			}
		}
	}
}
