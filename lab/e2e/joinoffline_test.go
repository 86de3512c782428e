package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/site"
)

// cutOff has a machine reach the cluster's API server alone.
const cutOff = `nft add table inet cutoff; nft add chain inet cutoff out '{ type filter hook output priority 0; policy drop; }'
nft add rule inet cutoff out oifname lo accept; nft add rule inet cutoff out ct state established,related accept; nft add rule inet cutoff out ip daddr SERVER tcp dport 443 accept`

// TestJoinOffline: a bare machine whose network leads to the API server alone joins out of a
// bundle, and leaves as it was. The Node that stays, since nobody who may delete it was
// there, is the machine's again with the next join, which tells what it changed.
func TestJoinOffline(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	progs := servePrograms(t, l)
	text := ownDocument(t, l, fromSite(progs), func(c *v1alpha1.NodeConfig) {
		for _, urls := range [][]string{c.Components.Kubernetes.URLs, c.Components.Containerd.URLs, c.Components.Runc.URLs, c.Components.CNI.URLs} {
			urls[0] = site.Nowhere(urls[0])
		}
		c.Components.SandboxImage = site.PauseImage
	})
	files := tokenAndCA(t, l)
	bundle, err := progs.BundleOf(within(t, 2*time.Minute), l, t.TempDir(), text, importedImage+"="+importLayout(t, l))
	check(t, err)
	maps.Copy(files, bundle)
	n := machineOf(t, l, "join-offline", lab.Bare, nodeConfig(t, l), files)
	check(t, n.WriteFile(configPath, text, 0o600))
	run(t, n, "sh", "-ec", strings.ReplaceAll(cutOff, "SERVER", l.Gateway().String()))
	before := look(t, n, "/var/lib/berth")

	r, said := joinCommand(t, n)
	if r.ExitCode != 0 || r.Milestone != "ready" || !ready(nodeOf(t, l, n)) {
		t.Fatalf("%+v\n%s", r, said)
	}
	if strings.Contains(said, "without a digest") || len(progs.Requests()) > 0 {
		t.Errorf("requests %v\n%s", progs.Requests(), said)
	}
	runImported(t, l, n)
	first, uid := r.Changes, nodeOf(t, l, n).UID
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 {
		t.Errorf("second join: %+v\n%s", r, said)
	}

	out, code := leaves(t, n, "--force")
	if code != 4 || !strings.Contains(out, "left: Node "+n.Name+" is still in the cluster: kubectl delete node "+n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/berth")); diff != "" {
		t.Error(diff)
	}
	r, said = joinCommand(t, n)
	t.Logf("after a leave that left the Node:\n%s", said)
	// The Node that stayed lost its labels to leave: it gets them again, which is one change more.
	if r.ExitCode != 0 || r.Milestone != "ready" || r.Changes != first+1 || !strings.Contains(said, "update node:"+n.Name) {
		t.Errorf("join after leave: %+v, want %d changes and one of the Node\n%s", r, first, said)
	}
	if again := nodeOf(t, l, n); again.UID != uid {
		t.Errorf("another Node: %s, was %s", again.UID, uid)
	}
	if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 || hasNode(t, l, n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
}
