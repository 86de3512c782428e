package e2e

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestCustomDataToReady is the main job: a prebaked image, multipart CustomData,
// a Ready node.
func TestCustomDataToReady(t *testing.T) {
	l := sharedLab(t)
	start := time.Now()
	n := addNode(t, l, lab.NodeConfig{Name: "main", UserData: customData(t, nodeConfig(t, l))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	t.Logf("Ready %.1f s after power on", time.Since(start).Seconds())
}
