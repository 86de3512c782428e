package aks

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/oci"
)

// gpu makes the machine's GPUs ready before kubelet starts.
func (t *translation) gpu() error {
	if !gpus(t) {
		return nil
	}
	s, p, err := t.gpuSettings()
	if err != nil {
		return err
	}
	rs, err := gpu.Resources(s, p)
	if err != nil {
		return err
	}
	t.node = append(t.node, t.add("gpu_config.enable_nvidia", rs...)...)
	if s.Skipped {
		return nil
	}
	return t.gpuServices()
}

// gpuServices tell kubelet of GPUs: the device plugin before it starts, the driver of
// dynamic resource allocation, which asks the API server, after it.
func (t *translation) gpuServices() error {
	k, err := t.kubeletFlagsAndConfig()
	if err != nil {
		return err
	}
	k.Hostname = t.facts.Hostname
	switch dra := t.cfg.GetGpuConfig().GetEnableManagedGpuDra(); {
	case dra && managesGPUs(t):
		return &DocumentError{Code: exitcode.GPUServices, Errors: []FieldError{{Error: field.Invalid(field.NewPath("gpu_config", "enable_managed_gpu_dra"), dra,
			"the device plugin is asked for, too, and both would give the same GPUs away")}}}
	case dra:
		t.add("gpu_config.enable_managed_gpu_dra", gpu.Services{DRA: true, Node: k.NodeName(), There: t.facts.HasVendorUnit}.Resources()...)
	case managesGPUs(t):
		t.node = append(t.node, t.add("gpu_config.enable_managed_gpu", gpu.Services{There: t.facts.HasVendorUnit, Partitioned: partitioned(t), Mixed: t.cfg.GetGpuConfig().GetMigStrategy() == "Mixed"}.Resources()...)...)
	default:
		t.add("gpu_config.enable_managed_gpu", gpu.NoServices(t.facts.HasVendorUnit)...)
	}
	return nil
}

// partitions are those of each GPU.
func (t *translation) partitions() ([]gpu.Partition, error) {
	c := t.cfg.GetGpuConfig()
	out, unknown := gpu.Partitions(c.GetGpuInstanceProfile(), c.GetMigProfileLayout())
	if unknown == "" {
		return out, nil
	}
	at := field.NewPath("gpu_config", "gpu_instance_profile")
	if i := slices.Index(c.GetMigProfileLayout(), unknown); i >= 0 {
		at = field.NewPath("gpu_config", "mig_profile_layout").Index(i)
	}
	return nil, &DocumentError{Code: decode.CodeRefused, Errors: []FieldError{{Error: field.Invalid(at, unknown, "nvidia-smi has no such partition: MIG1g, MIG2g, MIG3g, MIG4g, MIG7g, or a name as in 1g.5gb")}}}
}

func partitioned(t *translation) bool {
	c := t.cfg.GetGpuConfig()
	return c.GetGpuInstanceProfile() != "" || len(c.GetMigProfileLayout()) > 0
}

func laidOut(t *translation) bool { return len(t.cfg.GetGpuConfig().GetMigProfileLayout()) > 0 }

// plugged: the device plugin tells kubelet of partitions.
func plugged(t *translation) bool { return partitioned(t) && managesGPUs(t) }

func managesGPUs(t *translation) bool {
	return usesGPUs(t) && (t.cfg.GetGpuConfig().GetEnableManagedGpu() || t.facts.ManageGPU)
}

// servesGPUs: the machine keeps its GPUs itself, which a label of its Node tells.
func servesGPUs(t *translation) bool {
	return t.joins() && (managesGPUs(t) || usesGPUs(t) && t.cfg.GetGpuConfig().GetEnableManagedGpuDra())
}

func (t *translation) gpuSettings() (gpu.Settings, gpu.Inputs, error) {
	if t.facts.SkipGPU {
		return gpu.Settings{Skipped: true}, gpu.Inputs{}, nil
	}
	size := t.cfg.GetVmSize()
	partitions, err := t.partitions()
	if err != nil {
		return gpu.Settings{}, gpu.Inputs{}, err
	}
	s := gpu.Settings{Size: size, Tagged: t.facts.ManageGPU, Driver: gpu.Driver(size), Fabric: gpu.Switched(size),
		Partitions: partitions, Install: t.cfg.GetGpuConfig().GetConfigGpuDriver() && installsDrivers(t)}
	p := gpu.Inputs{Program: t.facts.Program, After: []desired.ID{desired.UnitID(containerd.Unit)}}
	if !s.Install {
		return s, p, nil
	}
	s.Image, s.Version = gpu.Image(t.facts.Files[gpu.ComponentsFile], s.Driver)
	if s.Image == "" { // what that means the unit says, where there is a GPU
		return s, p, nil
	}
	ref, err := oci.ParseImage(s.Image)
	if err != nil {
		return s, p, fmt.Errorf("image of a driver: %w", err)
	}
	t.driver, p.Source = s.Image, t.clusterImage(ref)
	for _, b := range t.facts.Images {
		if b.Reference == s.Image {
			p.Digest, p.Source = b.Digest, ""
		}
	}
	return s, p, nil
}

// installsDrivers: the images of drivers are made for Ubuntu on one architecture;
// elsewhere drivers are packages of the distribution, which the image brings.
func installsDrivers(t *translation) bool {
	return t.facts.Ubuntu != "" && t.facts.Architecture() == "amd64"
}

func tagManages(t *translation) bool { return t.facts.ManageGPU }

func skipsGPU(t *translation) bool { return t.facts.SkipGPU }

// usesGPUs: pods get their devices from NVIDIA's runtime.
func usesGPUs(t *translation) bool { return gpus(t) && !skipsGPU(t) }

// ofGPU is a field that counts where GPUs are used.
func ofGPU(r rule) rule {
	return ofMember(when(gpus, when(skipsGPU, useless(skipTag), r), useless("enable_nvidia is off")))
}

const skipTag = "a tag of the virtual machine leaves drivers of GPUs to others"
