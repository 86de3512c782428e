package aks

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

// components is what an image says of the drivers that it was made with.
const components = `{"GPUContainerImages": [
	{"downloadURL": "mcr.microsoft.com/aks/aks-gpu-cuda-lts:*", "gpuVersion": {"latestVersion": "580.126.09-20260101120000"}},
	{"downloadURL": "mcr.microsoft.com/aks/aks-gpu-grid:*", "gpuVersion": {"latestVersion": "550.144.06-20260201130000"}}]}`

// withGPUs is a configuration for GPUs, and a machine that its drivers can be installed on.
func withGPUs(t testing.TB, size string) (*aksnodeconfigv1.Configuration, component.Facts) {
	t.Helper()
	cfg, f := sample(t, "minimal.json"), machine
	cfg.VmSize, cfg.GpuConfig = size, &aksnodeconfigv1.GpuConfig{EnableNvidia: proto.Bool(true), ConfigGpuDriver: true}
	imageOfDrivers(&f)
	return cfg, f
}

func settingsIn(t *testing.T, st *desired.State) gpu.Settings {
	t.Helper()
	f, ok := st.Lookup(desired.FileID(gpu.SettingsFile)).(*desired.File)
	if !ok {
		t.Fatal("no settings of GPUs")
	}
	s, err := gpu.Read(f.Content.Data())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The size of the machine and what its image says decide which driver there is to be.
func TestGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		size   string
		change func(*aksnodeconfigv1.Configuration, *component.Facts)
		want   gpu.Settings
		source string
	}{
		"computation": {"Standard_NC24ads_A100_v4", nil, gpu.Settings{Driver: "cuda-lts", Install: true,
			Image: "mcr.microsoft.com/aks/aks-gpu-cuda-lts:580.126.09-20260101120000", Version: "580.126.09"},
			"oci://mcr.microsoft.com/aks/aks-gpu-cuda-lts:580.126.09-20260101120000"},
		"graphics": {"Standard_NV36ads_A10_v5", nil, gpu.Settings{Driver: "grid", Install: true,
			Image: "mcr.microsoft.com/aks/aks-gpu-grid:550.144.06-20260201130000", Version: "550.144.06"},
			"oci://mcr.microsoft.com/aks/aks-gpu-grid:550.144.06-20260201130000"},
		"a switch": {"Standard_ND96isr_H100_v5", func(c *aksnodeconfigv1.Configuration, _ *component.Facts) { c.GpuConfig.ConfigGpuDriver = false },
			gpu.Settings{Driver: "cuda-lts", Fabric: true}, ""},
		"an image that names none": {"Standard_NC6", nil, gpu.Settings{Driver: "cuda", Install: true}, ""},
		"an image that says nothing": {"Standard_NC4as_T4_v3", func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { f.Files = nil },
			gpu.Settings{Driver: "cuda-lts", Install: true}, ""},
		"another distribution": {"Standard_NC4as_T4_v3", func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { f.Ubuntu = "" },
			gpu.Settings{Driver: "cuda-lts"}, ""},
		"no way out": {"Standard_NC4as_T4_v3", func(c *aksnodeconfigv1.Configuration, _ *component.Facts) {
			c.BootstrapProfileContainerRegistryServer = "registry.example/mirror"
		}, gpu.Settings{Driver: "cuda-lts", Install: true, Image: "mcr.microsoft.com/aks/aks-gpu-cuda-lts:580.126.09-20260101120000", Version: "580.126.09"},
			"oci://registry.example/mirror/aks/aks-gpu-cuda-lts:580.126.09-20260101120000"},
		"out of a bundle": {"Standard_NC4as_T4_v3", func(_ *aksnodeconfigv1.Configuration, f *component.Facts) {
			f.Images = []component.BundledImage{{Reference: "mcr.microsoft.com/aks/aks-gpu-cuda-lts:580.126.09-20260101120000", Digest: "sha256:" + strings.Repeat("a", 64)}}
		}, gpu.Settings{Driver: "cuda-lts", Install: true, Image: "mcr.microsoft.com/aks/aks-gpu-cuda-lts:580.126.09-20260101120000", Version: "580.126.09"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, f := withGPUs(t, c.size)
			if c.change != nil {
				c.change(cfg, &f)
			}
			st := translate(t, cfg, f)
			c.want.Size = c.size
			if diff := cmp.Diff(c.want, settingsIn(t, st)); diff != "" {
				t.Error(diff)
			}
			i, ok := st.Lookup(desired.ImageID(c.want.Image)).(*desired.Image)
			if ok != (c.want.Image != "") || ok && i.Source != c.source {
				t.Errorf("image %+v", i)
			}
			k := st.Lookup(desired.UnitID(kubelet.Unit))
			if !comesAfter(st, k, desired.UnitID(gpu.Unit)) || !comesAfter(st, k, desired.CheckID(desired.CheckGPU)) {
				t.Error("kubelet does not wait for GPUs")
			}
		})
	}
}

func comesAfter(st *desired.State, r desired.Resource, id desired.ID) bool {
	for _, before := range r.Order().After {
		if before == id || comesAfter(st, st.Lookup(before), id) {
			return true
		}
	}
	return false
}

// A tag leaves drivers to others, and an image has no GPU yet; what asks for GPUs only
// makes pods get them.
func TestWithoutDrivers(t *testing.T) {
	runtime := func(st *desired.State) bool {
		return strings.Contains(string(st.Lookup(desired.FileID(containerd.ConfigFile)).(*desired.File).Content.Data()), "nvidia-container-runtime")
	}
	cfg, f := withGPUs(t, "Standard_NC4as_T4_v3")
	if !runtime(translate(t, cfg, f)) {
		t.Error("pods get no GPUs")
	}
	f.SkipGPU = true
	st := translate(t, cfg, f)
	if diff := cmp.Diff(gpu.Settings{Skipped: true}, settingsIn(t, st)); diff != "" || runtime(st) || st.Lookup(desired.UnitID(gpu.Unit)) != nil {
		t.Errorf("with the tag: %s", diff)
	}
	f.SkipGPU, cfg.PreProvisionOnly = false, true
	st = translate(t, cfg, f)
	if !runtime(st) || st.Lookup(desired.FileID(gpu.SettingsFile)) != nil || st.Lookup(desired.CheckID(desired.CheckGPU)) != nil {
		t.Error("an image that is prepared")
	}
}

// What the image says is read only where somebody needs it.
func TestReferences(t *testing.T) {
	cfg, _ := withGPUs(t, "Standard_NC4as_T4_v3")
	if got := References(&Document{Config: cfg}); !cmp.Equal(got.Files, []string{gpu.ComponentsFile}) || got.Driver != gpu.Repository+"cuda-lts" || got.DriverPlatform == "" {
		t.Errorf("%+v", got)
	}
	cfg.GpuConfig.ConfigGpuDriver = false
	if got := References(&Document{Config: cfg}); len(got.Files) != 1 || got.Driver != "" {
		t.Errorf("a driver that the image has: %+v", got)
	}
	cfg.GpuConfig.EnableNvidia = proto.Bool(false)
	if got := References(&Document{Config: cfg}).Files; got != nil {
		t.Error(got)
	}
}

// What tells kubelet of GPUs is one service, by the document or by a tag; the label of
// the Node says so. What the image runs besides stops.
func TestGPUServices(t *testing.T) {
	all := func(on ...string) map[string]bool {
		out := map[string]bool{}
		for _, name := range on {
			out[name] = true
		}
		return out
	}
	for name, c := range map[string]struct {
		change        func(*aksnodeconfigv1.Configuration, *component.Facts)
		started, down map[string]bool
	}{
		"none":                  {func(*aksnodeconfigv1.Configuration, *component.Facts) {}, all(), all()},
		"none, and the image's": {func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { vendorServices(f) }, all(), all(gpu.DevicePlugin, gpu.DRADriver)},
		"a plugin":              {func(c *aksnodeconfigv1.Configuration, _ *component.Facts) { c.GpuConfig.EnableManagedGpu = true }, all(gpu.DevicePlugin), all()},
		"a plugin by a tag":     {func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { f.ManageGPU = true }, all(gpu.DevicePlugin), all()},
		"allocation": {func(c *aksnodeconfigv1.Configuration, f *component.Facts) {
			vendorServices(f)
			c.GpuConfig.EnableManagedGpuDra = true
		}, all(gpu.DRADriver), all(gpu.DevicePlugin)},
		"a plugin without drivers": {func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { f.ManageGPU, f.SkipGPU = true, true }, all(), all()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, f := withGPUs(t, "Standard_NC4as_T4_v3")
			c.change(cfg, &f)
			st := translate(t, cfg, f)
			started, down := all(), all()
			for _, unit := range []string{gpu.DevicePlugin, gpu.DRADriver} {
				if u, ok := st.Lookup(desired.UnitID(unit)).(*desired.Unit); ok {
					started[unit], down[unit] = u.Activation == desired.Started, u.Activation == desired.Stopped
				}
			}
			for _, m := range []map[string]bool{started, down} {
				for unit, on := range m {
					if !on {
						delete(m, unit)
					}
				}
			}
			if diff := cmp.Diff([]map[string]bool{c.started, c.down}, []map[string]bool{started, down}); diff != "" {
				t.Error(diff)
			}
			k := st.Lookup(desired.UnitID(kubelet.Unit))
			if started[gpu.DevicePlugin] && !comesAfter(st, k, desired.UnitID(gpu.DevicePlugin)) || started[gpu.DRADriver] && !comesAfter(st, st.Lookup(desired.UnitID(gpu.DRADriver)), k.ID()) {
				t.Error("the wrong one is first")
			}
			flags := string(st.Lookup(desired.FileID(kubelet.FlagsFile)).(*desired.File).Content.Data())
			if strings.Contains(flags, gpu.Label+"="+gpu.LabelSwitch) != (len(started) > 0) {
				t.Errorf("labels: %s", flags)
			}
		})
	}
}

func vendorServices(f *component.Facts) {
	f.VendorUnits = []string{gpu.DevicePlugin, gpu.DRADriver}
}

// Both services would give the same GPUs away.
func TestTwoGPUServices(t *testing.T) {
	for name, change := range map[string]func(*aksnodeconfigv1.Configuration, *component.Facts){
		"the document": func(c *aksnodeconfigv1.Configuration, _ *component.Facts) { c.GpuConfig.EnableManagedGpu = true },
		"a tag":        func(_ *aksnodeconfigv1.Configuration, f *component.Facts) { f.ManageGPU = true },
	} {
		cfg, f := withGPUs(t, "Standard_NC4as_T4_v3")
		cfg.GpuConfig.EnableManagedGpuDra = true
		change(cfg, &f)
		_, err := Translate(&Document{Config: cfg}, f)
		refused, ok := errors.AsType[*DocumentError](err)
		if !ok || refused.Code != 123 || refused.Errors[0].Field != "gpu_config.enable_managed_gpu_dra" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What nvidia-smi can't make is refused where it counts.
func TestPartitionsAreRefused(t *testing.T) {
	for at, change := range map[string]func(*aksnodeconfigv1.GpuConfig){
		"gpu_config.gpu_instance_profile":  func(c *aksnodeconfigv1.GpuConfig) { c.GpuInstanceProfile = "MIG9g" },
		"gpu_config.mig_profile_layout[1]": func(c *aksnodeconfigv1.GpuConfig) { c.MigProfileLayout = []string{"MIG1g", "x"} },
	} {
		cfg, f := withGPUs(t, "Standard_NC24ads_A100_v4")
		change(cfg.GpuConfig)
		_, err := Translate(&Document{Config: cfg}, f)
		if refused, ok := errors.AsType[*DocumentError](err); !ok || refused.Errors[0].Field != at {
			t.Errorf("%s: %v", at, err)
		}
		f.SkipGPU = true
		if _, err := Translate(&Document{Config: cfg}, f); err != nil {
			t.Errorf("%s, left to others: %v", at, err)
		}
	}
}
