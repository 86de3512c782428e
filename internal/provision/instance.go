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
	bootInstance = "/run/cloud-init/.instance-id"
	// cloudInitDisabled is cloud-init's word that it does nothing in this boot.
	cloudInitDisabled = "/run/cloud-init/disabled"
	cloudInitUnit     = "cloud-init.service"
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
	for _, p := range []string{bootInstance, cloudInitDisabled} {
		if _, err := h.Lstat(p); err == nil {
			return true
		}
	}
	s, err := h.Unit(ctx, cloudInitUnit)
	if err != nil { // so early in the boot that there is nobody to ask
		return false
	}
	return s.LoadState != "loaded" || s.ActiveState == "active" || s.ActiveState == "failed"
}
