// Package nics gives network interfaces beside the first one their addresses.
package nics

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Unit is what configures the interfaces.
const Unit = "systemd-networkd.service"

// Most is how many further interfaces a virtual machine of Azure can have.
const Most = 7

// File is the path of an interface's file, which comes before the files of others: the first
// that matches an interface counts (systemd.network(5)), and netplan has one for each
// interface, 10-netplan-eth1.network.
func File(i int) string { return fmt.Sprintf("/etc/systemd/network/00-berth-secondary%d.network", i) }

// accelerated are the drivers of virtual functions (accelerated networking). A virtual function
// has the hardware address of the interface that it is bonded to, which alone has addresses.
const accelerated = "!mlx4_core mlx4_en mlx5_core mana"

// Resources are the files for so many interfaces. macs are the hardware addresses of the
// machine's interfaces, the first one's first; an interface without one is known by the name
// that Azure's images give it, eth1 and on. Each has an address by DHCP; names and the way
// out stay the first one's: its routes go first, and what routers tell of IPv6 is for it
// alone. The machine boots without them, and what configures them runs.
func Resources(count int, macs []string) []desired.Resource {
	var out []desired.Resource
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started}
	for i := 1; i <= min(count, Most); i++ {
		f := &desired.File{Path: File(i), Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
			match(i, macs),
			unitfile.In("Link", "RequiredForOnline", "no"),
			unitfile.In("Network", "DHCP", "ipv4", "IPv6AcceptRA", "no"),
			unitfile.In("DHCPv4", "RouteMetric", fmt.Sprint(2000+100*i), "UseDNS", "no", "UseHostname", "no", "UseNTP", "no")))}
		out = append(out, f)
		u.After, u.ReloadTriggers = append(u.After, f.ID()), append(u.ReloadTriggers, f.Path)
	}
	if out == nil {
		return nil
	}
	return append(out, u)
}

func match(i int, macs []string) []*unitfile.Setting {
	if i < len(macs) && macs[i] != "" {
		return unitfile.In("Match", "MACAddress", macs[i], "Driver", accelerated)
	}
	return unitfile.In("Match", "Name", fmt.Sprintf("eth%d", i))
}

var matched = lazyregexp.New(`(?m)^MACAddress=([0-9a-f:]{17})$`)

// MACOf is the hardware address that a file is for; "" for none.
func MACOf(text string) string {
	if m := matched().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
