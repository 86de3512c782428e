package provision

import (
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// instanceFiles say which machine this is: cloud-init's record of the cloud's
// id, else the id that the firmware was given.
var instanceFiles = []string{
	"/var/lib/cloud/data/instance-id",
	"/sys/class/dmi/id/product_uuid",
}

// InstanceID is the id of the machine, or "" where nothing tells. A captured
// image carries its origin's id only until cloud-init has run.
func InstanceID(h host.FS) string {
	for _, p := range instanceFiles {
		b, err := h.ReadFile(p)
		if id := strings.TrimSpace(string(b)); err == nil && id != "" {
			return id
		}
	}
	return ""
}
