package provision

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// shed removes from a machine that was made from another one's disk the pod
// network that the cluster gave to the other: containerd keeps a configuration
// that it has, and the pods of both would share addresses.
func (r *run) shed() error {
	if !isCopy(r.Host, r.instance, r.terms.ImageBuild) {
		return nil
	}
	if err := remove(r.Host, cni.GeneratedFile); err != nil {
		return fmt.Errorf("remove another machine's pod network: %w", err)
	}
	return nil
}

// isCopy says whether a run of another machine ended on this disk.
func isCopy(h host.FS, instance string, bake bool) bool {
	for _, p := range report.Places(bake) {
		s, err := report.ReadSentinel(h, p.Sentinel)
		if err == nil && s.InstanceID != "" && instance != "" && s.InstanceID != instance {
			return true
		}
	}
	return false
}
