package containerd

import (
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// ForwardDropIn has each start of the service let packets be forwarded that no rule
// forbids, as published.
const ForwardDropIn = UnitFile + ".d/10-forward.conf"

// forward: images with other programs for containers drop what nobody accepts, and
// pods would reach nobody. Where the program can't say it the service starts all
// the same: without iptables in the kernel nobody drops anything by it.
func forward(iptables string) []desired.Resource {
	if iptables == "" {
		return nil
	}
	return []desired.Resource{plain(ForwardDropIn, unitfile.Text(
		unitfile.In("Service", "ExecStartPost", "-"+iptables+" -w 5 -P FORWARD ACCEPT")))}
}
