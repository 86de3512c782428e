// Package ulimits sets resource limits of the container runtime's service, which
// containers inherit.
package ulimits

import (
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// DropIn is the published path of the limits.
const DropIn = "/etc/systemd/system/containerd.service.d/set_ulimits.conf"

// Settings are systemd limits: a number, soft:hard, a size or infinity; empty
// leaves a limit alone.
type Settings struct {
	NoFile, MemLock string
}

// Resources is the drop-in, or nothing where nothing is set.
func Resources(s Settings) []desired.Resource {
	var limits []*unitfile.Setting
	if s.MemLock != "" {
		limits = append(limits, unitfile.In("Service", "LimitMEMLOCK", s.MemLock)...)
	}
	if s.NoFile != "" {
		limits = append(limits, unitfile.In("Service", "LimitNOFILE", s.NoFile)...)
	}
	if limits == nil {
		return nil
	}
	return []desired.Resource{&desired.File{
		Path: DropIn, Mode: 0o600, Life: desired.Managed, Content: desired.Text(unitfile.Text(limits)),
	}}
}
