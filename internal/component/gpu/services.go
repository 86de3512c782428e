package gpu

import (
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// The services that the machine's image brings for GPUs, by their published names.
const (
	// DevicePlugin tells kubelet of GPUs; DRADriver does it by dynamic resource
	// allocation, in its place.
	DevicePlugin = "nvidia-device-plugin.service"
	DRADriver    = "dra-driver-nvidia-gpu.service"

	collector = "nvidia-dcgm.service"
	exporter  = "nvidia-dcgm-exporter.service"
)

// What tells others that the machine keeps its GPUs itself, as published.
const (
	Marker      = "/opt/azure/containers/managed-gpu-experience.enabled"
	Label       = "kubernetes.azure.com/dcgm-exporter"
	LabelSwitch = "enabled"
)

// Services are what runs beside kubelet for the GPUs of a machine.
type Services struct {
	// DRA: dynamic resource allocation takes the place of the device plugin.
	DRA bool
	// Mixed is how partitions are told of: each kind as a resource of its own, else all
	// as one. Partitioned: there are some.
	Partitioned, Mixed bool
	// Node is the name of the machine's Node.
	Node string
	// There says whether the image has a unit.
	There func(unit string) bool
}

// Resources are the service that tells kubelet of GPUs, with the collector of their
// figures, which the service takes along: they may fail alone. Off are the services of
// the image that are not wanted.
func (s Services) Resources() []desired.Resource {
	unit, program, after := DevicePlugin, "/usr/bin/nvidia-device-plugin", desired.UnitID(Unit)
	if s.DRA {
		unit, program, after = DRADriver, "/usr/bin/gpu-kubelet-plugin", desired.UnitID(kubelet.Unit)
	}
	out := []desired.Resource{
		&desired.Artifact{Name: Artifact, Files: []desired.ArtifactFile{{Path: program, Mode: 0o755}}},
		plain(Marker, ""),
		plain(dropIn(unit, s.dropInName()), s.definition()),
		plain(dropIn(collector, "10-berth.conf"), unitfile.Text(unitfile.In("Unit", "PartOf", unit))),
		plain(dropIn(exporter, "10-aks-override.conf"), unitfile.Text(
			unitfile.In("Unit", "PartOf", unit),
			unitfile.In("Service", "StandardOutput", "journal", "StandardError", "journal", "ExecStart", "",
				"ExecStart", `/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/default-counters.csv --address ":19400"`))),
	}
	u := &desired.Unit{Base: desired.Base{After: []desired.ID{after}}, Name: unit, Enablement: desired.Enabled, Activation: desired.Started}
	for _, r := range out {
		u.After = append(u.After, r.ID())
	}
	return append(append(out, u), s.off(unit)...)
}

// Artifact is the program of the service, which the image has.
const Artifact = "gpu-services"

func (s Services) dropInName() string {
	if s.DRA {
		return "10-dra-driver-nvidia-gpu.conf"
	}
	return "10-device-plugin-config.conf"
}

func dropIn(unit, name string) string { return unitDir + unit + ".d/" + name }

// definition has the service run as published.
func (s Services) definition() string {
	wants := unitfile.In("Unit", "Wants", collector+" "+exporter)
	if s.DRA {
		return unitfile.Text(append(wants, unitfile.In("Unit", "Requires", kubelet.Unit, "After", kubelet.Unit)...),
			unitfile.In("Service", "ExecStart", "", "ExecStart",
				"/usr/bin/gpu-kubelet-plugin --kubeconfig "+kubelet.Kubeconfig+` --container-driver-root / --image-name "" --node-name=`+unitfile.Word(s.Node)))
	}
	strategy := ""
	switch {
	case s.Partitioned && s.Mixed:
		strategy = " --mig-strategy mixed"
	case s.Partitioned:
		strategy = " --mig-strategy single"
	}
	return unitfile.Text(wants, unitfile.In("Service", "ExecStart", "", "ExecStart", "/usr/bin/nvidia-device-plugin"+strategy+" --pass-device-specs"))
}

// off stops the image's service that is not wanted, where it is there.
func (s Services) off(wanted string) []desired.Resource {
	var out []desired.Resource
	for _, name := range []string{DevicePlugin, DRADriver} {
		if name != wanted && s.There(name) {
			out = append(out, &desired.Unit{Name: name, Enablement: desired.Disabled, Activation: desired.Stopped})
		}
	}
	return out
}

// NoServices stops all that the image has, where nobody asks for them.
func NoServices(there func(unit string) bool) []desired.Resource {
	var out []desired.Resource
	for _, name := range []string{DevicePlugin, DRADriver, exporter, collector} {
		if there(name) {
			out = append(out, &desired.Unit{Name: name, Enablement: desired.Disabled, Activation: desired.Stopped})
		}
	}
	return out
}
