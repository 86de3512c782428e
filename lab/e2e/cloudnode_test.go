package e2e

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// cloudNode is a machine of a cloud with everything that only a cloud has: its metadata, its
// certificate authorities, and the programs and services of its image.
type cloudNode struct {
	*tagged
	wire *serve.WireServer
}

// TestCloudNode: a machine of a cloud of its own trusts the certificate authorities of that
// cloud, finds the API server by a tag, streams images, has the cloud's program obtain
// kubelet's certificate, and enters a domain. What changes in the cloud reaches the node by
// itself, and leave takes it all back, but for the domain, in which the machine stays.
func TestCloudNode(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	c := newCloudNode(t, l)
	n, between := c.node, caOf(t, "between.lab.test")
	before := lookBeside(t, n)
	old, young := c.startService(t), c.startService(t)
	c.wire.Tell([]string{old.ca}, []string{between})
	c.tagAPIServer(l.Gateway().String())
	provisioned(t, l, n)
	t.Run("certificate authorities", func(t *testing.T) { old.trusted(t, n); young.strange(t, n); asksAgain(t, n) })
	t.Run("API server", func(t *testing.T) { c.findsAPIServer(t, l.Gateway().String()) })
	planIsEmpty(t, l, n)

	c.wire.Tell([]string{young.ca}, []string{between})
	run(t, n, "systemctl", "start", cloudCAUnit)
	t.Run("other certificate authorities", func(t *testing.T) { young.trusted(t, n); old.strange(t, n) })
	t.Run("realm", c.inRealm)
	t.Run("streamed images", c.streamed)
	t.Run("attested certificate", c.attested)
	c.moveAPIServer(t)
	t.Run("after a boot", c.boots)

	admin, err := os.ReadFile(l.Kubeconfig())
	check(t, err)
	check(t, n.WriteFile(adminPath, admin, 0o600))
	if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	young.strange(t, n)
	after := lookBeside(t, n)
	if _, stays := after.Tree["/etc/krb5.keytab"]; !stays {
		t.Error("the machine's keys of its domain are gone")
	}
	delete(after.Tree, "/etc/krb5.keytab")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

// lookBeside looks at what is neither containerd's nor kubelet's, see TestLeave.
func lookBeside(t *testing.T, n *lab.Node, skip ...string) asItIs {
	t.Helper()
	now := look(t, n, append(skip, "/var/lib/containerd")...)
	delete(now.Live, "sysctl")
	return now
}

// boots: what runs again at each boot does, in its order, and what runs once does not. The
// API server that has moved is found by the timer, which nobody helps.
func (c *cloudNode) boots(t *testing.T) {
	n := c.node
	if err := n.Reboot(within(t, rebootTime)); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	awaitHeartbeat(t, c.lab, n.Name, up)
	for _, first := range []string{"containerd", "acr-mirror", "overlaybd-tcmu", "overlaybd-snapshotter"} { // of the image, in no order
		started(t, n, first, "berth-artifact-streaming")
	}
	started(t, n, attestUnit, "kubelet")
	started(t, n, realmUnit)
	if n.Exists(realmCalls) {
		t.Errorf("realm was called again with %q", read(t, n, realmCalls))
	}
	if calls := read(t, n, streamCalls); calls != "aks" {
		t.Errorf("%s was called with %q", streamSetup, calls)
	}
	asksAgain(t, n)
	c.awaitAPIServer(t, movedAPIServer)
	planIsEmpty(t, c.lab, n)
}

// newCloudNode boots the machine, and has the cloud's own services answer.
func newCloudNode(t *testing.T, l *lab.Lab) *cloudNode {
	t.Helper()
	const name = "cloud"
	files := attestFiles(t, l, name)
	maps.Copy(files, streamFiles(t, l))
	maps.Copy(files, realmFiles())
	ofCloud := func(c *aksnodeconfigv1.Configuration) {
		c.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{CustomCloudEnvName: "akscustom"}
		c.ApiServerConfig.ApiServerName, c.EnableHostsConfigAgent = lab.PrivateAPIServerName, true
	}
	n := addNode(t, l, lab.NodeConfig{Name: name, Files: files})
	if _, err := n.WaitBooted(within(t, 2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := &cloudNode{&tagged{&badMachine{l, n}, newMetadata(t, l)}, serve.NewWireServer()}
	c.configure(t, c.document(t, ofCloud, attests, streams, joinsRealm))
	c.site.start(t)
	at := newService(t, l, serve.WireServerAddress)
	wire := serve.Start(at.listen(t, 80), c.wire)
	t.Cleanup(func() { check(t, wire.Close()) })
	c.site.reachesNode(t, n)
	at.reachesNode(t, n)
	return c
}
