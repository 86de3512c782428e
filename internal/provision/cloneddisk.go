package provision

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// resetClonedDisk removes from a machine that was made from another one's disk the pod
// network that the cluster gave to the other: containerd keeps a configuration
// that it has, and the pods of both would share addresses. What was good for the
// other one is not known to be good here.
func (r *run) resetClonedDisk(ctx context.Context) error {
	if !isClone(r.Host, r.instance, r.terms.ImageBuild) {
		return nil
	}
	if err := remove(r.Host, cni.GeneratedFile); err != nil {
		return fmt.Errorf("remove another machine's pod network: %w", err)
	}
	if err := trial.Clear(ctx, r.Host); err != nil {
		return fmt.Errorf("forget another machine's configuration: %w", err)
	}
	return nil
}

// isClone says whether a run of another machine ended on this disk.
func isClone(h host.FS, instance string, imageBuild bool) bool {
	for _, p := range report.ResultFiles(imageBuild) {
		s, err := report.ReadSentinel(h, p.Sentinel)
		if err == nil && s.InstanceID != "" && instance != "" && s.InstanceID != instance {
			return true
		}
	}
	return false
}
