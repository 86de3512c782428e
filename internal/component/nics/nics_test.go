package nics

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	if rs := Resources(0, nil); rs != nil {
		t.Error(rs)
	}
	if rs := Resources(-1, nil); rs != nil {
		t.Error(rs)
	}
	if rs := Resources(99, nil); len(rs) != Most+1 {
		t.Error(len(rs))
	}
	const first, second = "00:0d:3a:00:00:01", "00:0d:3a:00:00:02"
	st := golden.State(t, Resources(2, []string{first, second}))
	for i, want := range [][]string{
		{"[Match]\nMACAddress=" + second + "\nDriver=!mlx4_core mlx4_en mlx5_core mana\n", "DHCP=ipv4\n", "IPv6AcceptRA=no\n", "RouteMetric=2100\n", "UseDNS=no\n", "RequiredForOnline=no\n"},
		{"[Match]\nName=eth2\n", "RouteMetric=2200\n"},
	} {
		text := string(golden.File(t, st, File(i+1)).Content.Data())
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
		if got, want := MACOf(text), []string{second, ""}[i]; got != want {
			t.Errorf("the file of interface %d is for %q, not %q", i+1, got, want)
		}
	}
	u := st.Lookup(desired.UnitID(Unit)).(*desired.Unit)
	u.After = nil
	want := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started, ReloadTriggers: []string{File(1), File(2)}}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Error(diff)
	}
}

// TestFileComesFirst: networkd takes the first file that matches, in the order of names
// and whatever the directory.
func TestFileComesFirst(t *testing.T) {
	for _, other := range []string{"10-netplan-eth1.network", "05-cloud-init-eth1.network"} {
		if path.Base(File(Most)) >= other {
			t.Errorf("%s comes after %s", File(Most), other)
		}
	}
}
