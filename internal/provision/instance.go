package provision

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
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
	// cloudInitDisabled is cloud-init's word that it does nothing in this boot,
	// cloudInitEnabled that it will do something. One of them is there from the
	// first moments of a boot.
	cloudInitDisabled = "/run/cloud-init/disabled"
	cloudInitEnabled  = "/run/cloud-init/enabled"
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

// identifyBudget is how long a cloud-init that has not said that it will look is
// waited for.
const identifyBudget = time.Minute

// identified says that InstanceID is about this boot. Until cloud-init has
// looked, a machine made from a captured image still has its origin's id, and
// its origin's result looks like its own. A cloud-init that is on the machine and
// not started in this boot keeps nobody waiting for longer than the unit that
// comes after it, or than the budget; waited is how long it has been.
func identified(ctx context.Context, h host.Host, waited time.Duration) bool {
	if there(h, bootInstance) || there(h, cloudInitDisabled) {
		return true
	}
	if waited >= identifyBudget && !there(h, cloudInitEnabled) {
		return true
	}
	if s, err := h.Unit(ctx, report.ServiceUnit); err == nil && !s.ExecMainStart.IsZero() {
		return true
	}
	for _, u := range report.CloudInitUnits {
		s, err := h.Unit(ctx, u)
		if err != nil { // so early in the boot that there is nobody to ask
			return false
		}
		if s.LoadState == "loaded" && s.ActiveState != "active" && s.ActiveState != "failed" {
			return false
		}
	}
	return true
}

func there(h host.FS, p string) bool {
	_, err := h.Lstat(p)
	return err == nil
}
