package containerd

import (
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// SliceDropIn is the name of the drop-in that puts a service into the slice that
// kubelet reserves resources for.
const SliceDropIn = "10-slice.conf"

// slice is the slice itself and the service's place in it.
func slice(name string) []desired.Resource {
	if name == "" {
		return nil
	}
	return []desired.Resource{
		plain("/etc/systemd/system/"+name, sliceText()),
		plain(UnitFile+".d/"+SliceDropIn, SliceText(name)),
	}
}

// sliceText: kubelet sets the limits, but only in a cgroup that has the
// controllers, which is what accounting is for.
func sliceText() string {
	return unitfile.Text(
		unitfile.In("Unit",
			"Description", "Resources reserved for kubelet and the container runtime",
			"Before", "slices.target"),
		unitfile.In("Slice", "CPUAccounting", "yes", "MemoryAccounting", "yes", "TasksAccounting", "yes"))
}

// SliceText puts a service into a slice.
func SliceText(name string) string { return unitfile.Text(unitfile.In("Service", "Slice", name)) }

func plain(path, text string) *desired.File {
	return &desired.File{Path: path, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}
