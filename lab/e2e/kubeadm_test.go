package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestKubeadmJoin proves that kubeadm, which the benchmark measures against,
// can join a node of this lab.
func TestKubeadmJoin(t *testing.T) {
	l := sharedLab(t)
	if err := l.EnableKubeadm(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	userData, err := os.ReadFile("testdata/kubeadm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "adm", UserData: userData, WithoutBerth: true})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	join, err := l.KubeadmJoin()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := n.Run(within(t, time.Minute), join...); err != nil {
		t.Fatal(err)
	}
	if _, err := l.WaitNodeReady(within(t, time.Minute), "adm"); err != nil {
		t.Fatal(err)
	}
	t.Logf("Ready %.2f s after the start of kubeadm join", time.Since(start).Seconds())
}
