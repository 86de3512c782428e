package kernel

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
)

func TestDeny(t *testing.T) {
	for _, c := range []struct {
		s    System
		want bool
	}{
		{System{"5.4.0-1100-azure", "ubuntu", "20.04", ""}, true},
		{System{"5.4.0-1163-azure-fips", "ubuntu", "20.04", ""}, true},
		{System{"5.4.0-1164-azure-fips", "ubuntu", "20.04", ""}, false},
		{System{"5.4.0-1200-azure-fips", "ubuntu", "20.04", ""}, false},
		{System{"5.15.0-1116-azure-fips", "ubuntu", "20.04", ""}, true},
		{System{"5.4.1-1164-azure-fips", "ubuntu", "20.04", ""}, true},
		{System{"5.4.0-1164.170-azure-fips", "ubuntu", "20.04", ""}, true},
		{System{"5.15.0-1115-azure", "ubuntu", "22.04", ""}, true},
		{System{"5.15.0-1116-azure", "ubuntu", "22.04", ""}, false},
		{System{"5.15.0-1120-azure-fde", "ubuntu", "22.04", ""}, false},
		{System{"5.15.0-180-generic", "ubuntu", "22.04", ""}, true},
		{System{"5.15.0-181-generic", "ubuntu", "22.04", ""}, false},
		{System{"5.15.0-1116-azure-custom", "ubuntu", "22.04", ""}, true},
		{System{"6.8.0-1057-azure", "ubuntu", "24.04", ""}, true},
		{System{"6.8.0-1058-azure", "ubuntu", "24.04", ""}, false},
		{System{"6.14.0-1010-azure", "ubuntu", "24.04", ""}, false},
		{System{"6.8.0-124-generic", "ubuntu", "24.04", ""}, false},
		{System{"6.8.0-1050-azure-fde", "ubuntu", "24.04", ""}, true},
		{System{"6.8.0-1058-custom", "ubuntu", "24.04", ""}, true},
		{System{"", "ubuntu", "24.04", ""}, true},
		{System{"6.8.0-1058-azure", "ubuntu", "", ""}, true},
		{System{"6.14.0-1000-azure", "ubuntu", "26.04", ""}, false},
		{System{"5.15.1-azl", "mariner", "2.0", ""}, true},
		{System{"6.6.139.1-1.azl3", "azurelinux", "3.0", ""}, false},
		{System{"6.6.139.1-1.azl3", "azurelinux", "3.0", "osguard"}, true},
		{System{"6.12.0", "debian", "12", ""}, false},
		{System{"6.12.0", "flatcar", "4000.0.0", ""}, false},
	} {
		if got := len(Deny(c.s)); got != map[bool]int{true: 4}[c.want] {
			t.Errorf("%+v: %d files", c.s, got)
		}
	}
}

func TestDenyFiles(t *testing.T) {
	st := golden.State(t, Deny(System{ID: "mariner"}))
	want := "# Written by berth.\ninstall esp4 /bin/false\nblacklist esp4\n"
	if f := golden.File(t, st, "/etc/modprobe.d/disable-esp4.conf"); string(f.Content.Data()) != want || f.Mode != 0o644 {
		t.Errorf("%s: %s", f.Mode, f.Content.Data())
	}
}
