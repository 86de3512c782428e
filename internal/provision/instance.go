package provision

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

// instanceFiles say which machine this is: what cloud-init found in this boot,
// what it found last, and the id that the firmware was given.
var instanceFiles = []string{
	bootInstance,
	"/var/lib/cloud/data/instance-id",
	"/sys/class/dmi/id/product_uuid",
}

const (
	bootInstance     = "/run/cloud-init/.instance-id"
	cloudInitEnabled = "/run/cloud-init/enabled"
	cloudInitUnit    = "cloud-init.service"
)

// InstanceID is the id of the machine, or "" where nothing tells.
func InstanceID(h host.FS) string {
	for _, p := range instanceFiles {
		b, err := h.ReadFile(p)
		if id := strings.TrimSpace(string(b)); err == nil && id != "" {
			return id
		}
	}
	return ""
}

// identified says that InstanceID is about this boot. Until cloud-init has
// looked, a machine made from a captured image still has its origin's id, and
// its origin's result looks like its own.
func identified(ctx context.Context, h host.Host) bool {
	if _, err := h.Lstat(bootInstance); err == nil {
		return true
	}
	if _, err := h.Lstat(cloudInitEnabled); err != nil {
		return true // no cloud-init in this boot
	}
	s, err := h.Unit(ctx, cloudInitUnit)
	return err == nil && (s.ActiveState == "active" || s.ActiveState == "failed")
}
