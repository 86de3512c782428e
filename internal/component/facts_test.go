package component

import "testing"

func TestHasVersion(t *testing.T) {
	f := Facts{VersionedPrograms: []string{"kubelet-1.34.2", "kubectl-"}}
	if !f.HasVersion("kubelet", "1.34.2") || f.HasVersion("kubelet", "1.34.1") || f.HasVersion("kubectl", "") {
		t.Error("kubelet 1.34.2 alone is there")
	}
}

func TestHasVendorUnit(t *testing.T) {
	f := Facts{VendorUnits: []string{"containerd.service", "ssh.service"}}
	if !f.HasVendorUnit("containerd.service") || f.HasVendorUnit("kubelet.service") {
		t.Error("vendor units are mixed up")
	}
}
