package identity

import (
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// Where kubelet takes from what a Node says of its machine: the first of each that can be
// read (github.com/google/cadvisor, machine/info.go and utils/sysfs). Machines of one image
// may share the former, and containers of one host the latter.
var (
	machineIDFiles  = []string{"/etc/machine-id", "/var/lib/dbus/machine-id"}
	systemUUIDFiles = []string{"/sys/class/dmi/id/product_uuid", "/proc/device-tree/system-id", "/proc/device-tree/vm,uuid", "/etc/machine-id"}
)

// MachineID is what kubelet takes for the id of the machine; "" if it finds none.
func MachineID(h host.FS) string { return firstOf(h, machineIDFiles) }

// SystemUUID is what kubelet takes for the UUID of the machine's hardware; "" if it finds
// none.
func SystemUUID(h host.FS) string { return firstOf(h, systemUUIDFiles) }

func firstOf(h host.FS, files []string) string {
	for _, name := range files {
		if text, err := h.ReadFile(name); err == nil {
			return strings.TrimSpace(strings.TrimRight(string(text), "\x00"))
		}
	}
	return ""
}

// isOwnNode says whether a kubelet of this machine reported a Node: the machine is the same,
// or its present boot is. The latter tells where the ids are others since.
func isOwnNode(h host.FS, said core.NodeSystemInfo) bool {
	if boot := report.BootID(h); boot != "" && said.BootID == boot {
		return true
	}
	return said.MachineID != "" && said.MachineID == MachineID(h) && strings.EqualFold(said.SystemUUID, SystemUUID(h))
}
