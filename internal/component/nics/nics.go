// Package nics gives network interfaces beside the first one their addresses.
package nics

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Unit is what configures the interfaces.
const Unit = "systemd-networkd.service"

// Most is how many further interfaces a virtual machine of Azure can have.
const Most = 7

// Resources are the files for so many interfaces, eth1 and on, which Azure's images name
// so. Each has an address by DHCP; names and the way out stay the first one's: its routes
// go first. The machine boots without them.
func Resources(count int) []desired.Resource {
	var out []desired.Resource
	u := &desired.Unit{Name: Unit}
	for i := 1; i <= min(count, Most); i++ {
		f := &desired.File{Path: fmt.Sprintf("/etc/systemd/network/70-berth-eth%d.network", i), Mode: 0o644, Life: desired.Managed, Content: desired.Text(unitfile.Text(
			unitfile.In("Match", "Name", fmt.Sprintf("eth%d", i)),
			unitfile.In("Link", "RequiredForOnline", "no"),
			unitfile.In("Network", "DHCP", "ipv4"),
			unitfile.In("DHCPv4", "RouteMetric", fmt.Sprint(2000+100*i), "UseDNS", "no", "UseHostname", "no", "UseNTP", "no")))}
		out = append(out, f)
		u.After, u.ReloadTriggers = append(u.After, f.ID()), append(u.ReloadTriggers, f.Path)
	}
	if out == nil {
		return nil
	}
	return append(out, u)
}
