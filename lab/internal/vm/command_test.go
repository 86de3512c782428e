package vm

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCards(t *testing.T) {
	further := Card{MAC: "52:55:01:00:00:02", Subnet: netip.MustParsePrefix("10.77.1.0/24")}
	got := cards(Config{Tap: "tap-1", MAC: "52:54:00:00:00:02", Further: []Card{further}})
	want := []string{
		"-netdev", "tap,id=net,script=no,downscript=no,ifname=tap-1", "-device", "virtio-net-pci,netdev=net,mac=52:54:00:00:00:02",
		"-netdev", "user,id=net1,net=10.77.1.0/24", "-device", "virtio-net-pci,netdev=net1,mac=52:55:01:00:00:02",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a := further.Address(); a != netip.MustParseAddr("10.77.1.15") {
		t.Errorf("by DHCP: %s", a)
	}
	if none := cards(Config{}); none != nil {
		t.Errorf("without a tap: %q", none)
	}
}
