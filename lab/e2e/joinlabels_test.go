package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// TestJoinLabelsItsOldNode: kubelet gives labels only to a Node that it creates. One that
// is there, since leave could not delete it or the node's certificate was lost, has the labels of the
// document after one join all the same, and loses those of the one before.
func TestJoinLabelsItsOldNode(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := machineOf(t, l, "join-labels", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	join := func(labels map[string]string) {
		t.Helper()
		text := ownDocument(t, l, func(c *v1alpha1.NodeConfig) { c.Node.Labels = labels })
		if err := n.WriteFile(configPath, text, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r, said := joinCommand(t, n)
		t.Logf("join took %.2f s, %d changes", time.Since(start).Seconds(), r.Changes)
		if r.ExitCode != 0 || r.Milestone != "ready" {
			t.Fatalf("%+v\n%s", r, said)
		}
		got := map[string]string{}
		for _, key := range []string{"example.com/a", "example.com/b", "example.com/c", "theirs"} {
			if value, ok := nodeOf(t, l, n).Labels[key]; ok {
				got[key] = value
			}
		}
		if diff := cmp.Diff(labels, got); diff != "" {
			t.Errorf("labels after one join: %s\n%s", diff, said)
		}
		planIsEmpty(t, l, n)
	}
	join(map[string]string{"example.com/a": "1", "example.com/b": "1"})
	uid := nodeOf(t, l, n).UID
	if out, code := leaves(t, n, "--force"); code != 4 || !hasNode(t, l, n.Name) {
		t.Fatalf("leave: exit code %d\n%s", code, out)
	}
	join(map[string]string{"example.com/a": "2", "example.com/c": "1"})
	run(t, n, "rm", "-r", "/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki")
	join(map[string]string{"example.com/a": "3"})
	if nodeOf(t, l, n).UID != uid {
		t.Error("it is another Node")
	}
}
