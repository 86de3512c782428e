package identity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
)

// What is in force is what was put there, whatever else it stands beside, and serves
// for as long as the machine's clock lets it.
func TestInForce(t *testing.T) {
	c := newCluster(t)
	m, d := joined(t, c, nodeName("n1"), time.Hour)
	i := New(m)
	cred, err := i.InForce(m, d)
	if err != nil || !i.Serves(d, cred) {
		t.Fatal(err)
	}
	files, err := i.Files(d, cred)
	if err != nil {
		t.Fatal(err)
	}
	before := m.Tree("/var/lib/kubelet")
	if err := m.Remove("/var/lib/kubelet/pki/kubelet-client-current.pem"); err != nil {
		t.Fatal(err)
	}
	put(m.Host, files)
	if diff := cmp.Diff(before, m.Tree("/var/lib/kubelet")); diff != "" {
		t.Error(diff)
	}
	m.skew = time.Hour
	if New(m).Serves(d, cred) {
		t.Error("one that expired serves")
	}
	other := *d
	other.NodeName = "n2"
	if i.Serves(&other, cred) || i.Serves(d, converge.Credential{}) {
		t.Error("another node's, or none, serves")
	}
	if err := m.Remove(d.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	if _, err := i.InForce(m, d); err == nil {
		t.Error("no kubeconfig is no error")
	}
}
