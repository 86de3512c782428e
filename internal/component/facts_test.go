package component

import "testing"

func TestHasVendorUnit(t *testing.T) {
	f := Facts{VendorUnits: []string{"containerd.service", "ssh.service"}}
	if !f.HasVendorUnit("containerd.service") || f.HasVendorUnit("kubelet.service") {
		t.Error("vendor units are mixed up")
	}
}
