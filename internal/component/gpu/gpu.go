// Package gpu is what makes the NVIDIA GPUs of a machine ready for pods: a unit that
// sees to their driver at each boot, before kubelet, which does not start without it.
package gpu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// Names and paths.
const (
	// Unit runs berth node gpu, which reads SettingsFile.
	Unit         = "berth-gpu.service"
	SettingsFile = paths.SettingsDir + "/gpu.json"
	// FabricManager comes with the driver.
	FabricManager = "nvidia-fabricmanager.service"

	unitDir  = "/etc/systemd/system/"
	unitFile = unitDir + Unit
	// cdiDropIn lets a service of the driver's fail as long as the driver is not whole, as
	// published: the installer, which starts it, ends with it else.
	cdiDropIn = unitDir + "nvidia-cdi-refresh.service.d/10-aks-tolerate-generate-failure.conf"
	// kubeletDropIn keeps kubelet from starting at a boot at which the driver does not come.
	kubeletDropIn = kubelet.DropInDir + "/10-gpu.conf"
)

// Budget is how long all that Unit does may take: a driver may have to be built for the
// running kernel. spare is for it to say what came of that, before systemd ends it. Both are
// over before who waits for the unit gives up: a run by its usual limit, and the wait for a
// job of systemd, have 15 minutes.
const (
	Budget = 13 * time.Minute
	spare  = time.Minute
)

// Settings are what the machine's GPUs are to be. They are what SettingsFile holds.
type Settings struct {
	// Skipped: a tag of the virtual machine leaves all of it to others.
	Skipped bool `json:"skipped,omitempty"`
	// Size is the virtual machine's, for messages.
	Size string `json:"size,omitempty"`
	// Driver is its kind. Install: it is installed where it is not; else it is only
	// looked at.
	Driver  string `json:"driver,omitempty"`
	Install bool   `json:"install,omitempty"`
	// Image is the container image that installs the driver, of Version; both are ""
	// where the image of the machine does not say.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Tagged: a tag of the virtual machine has services for GPUs run.
	Tagged bool `json:"tagged,omitempty"`
	// Fabric: the GPUs are joined by a switch.
	Fabric bool `json:"fabric,omitempty"`
	// Partitions are those of each GPU; none: GPUs are whole.
	Partitions []Partition `json:"partitions,omitempty"`
}

// Inputs are what else a machine's unit depends on.
type Inputs struct {
	// Source is where the image comes from: "oci://registry/repository:tag".
	Source string
	// Digest is the image's, where it comes from a bundle on the machine.
	Digest string
	// Program is berth's own path; empty: packetfilter.Program.
	Program string
	// After is what must be in place before.
	After []desired.ID
}

// Resources are the settings and, unless a tag leaves them to others, the check that
// there is a GPU, the driver's image, and the unit after all of them.
func Resources(s Settings, p Inputs) ([]desired.Resource, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write GPU settings: %w", err)
	}
	settings := plain(SettingsFile, string(text)+"\n")
	if s.Skipped {
		return []desired.Resource{settings}, nil
	}
	check := &desired.Check{Name: desired.CheckGPU, Timeout: Appears}
	out := []desired.Resource{settings, check, plain(unitFile, p.unit()),
		plain(kubeletDropIn, unitfile.Text(unitfile.In("Unit", "Requires", Unit, "After", Unit)))}
	if s.Install {
		out = append(out, plain(cdiDropIn, unitfile.Text(unitfile.In("Service", "SuccessExitStatus", "1 2 127"))))
	}
	if s.Install && s.Image != "" {
		out = append(out, &desired.Image{Base: desired.Base{After: []desired.ID{check.ID(), desired.UnitID(containerd.Unit)}},
			Reference: s.Image, Source: p.Source, Digest: p.Digest})
	}
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{SettingsFile}}
	u.After = append(u.After, p.After...)
	for _, r := range out {
		u.After = append(u.After, r.ID())
	}
	return append(out, u), nil
}

// Appears is how long a device may take to appear after a boot.
const Appears = 10 * time.Second

func (p Inputs) unit() string {
	return unitfile.Text(
		unitfile.In("Unit", "Description", "NVIDIA GPUs of this node", "Wants", containerd.Unit, "After", containerd.Unit,
			"Before", kubelet.Unit),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes",
			"ExecStart", unitfile.Word(cmp.Or(p.Program, packetfilter.Program))+" node gpu",
			"TimeoutStartSec", fmt.Sprintf("%.0fmin", (Budget+spare).Minutes())),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}

// Read are the settings that a SettingsFile holds.
func Read(text []byte) (Settings, error) {
	var s Settings
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", SettingsFile, err)
	}
	return s, nil
}
