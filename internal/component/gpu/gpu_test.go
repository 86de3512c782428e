package gpu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestDriver(t *testing.T) {
	for size, want := range map[string]struct {
		driver string
		fabric bool
	}{
		"Standard_NC24ads_A100_v4": {cudaLTS, false}, "Standard_NC6": {cuda, false}, "Standard_NV36ads_A10_v5": {grid, false}, "": {cudaLTS, false},
		"standard_nc32ads_a10_v4": {grid, false}, "Standard_NC36ds_xl_RTXPRO6000BSE_v6": {gridV20, false},
		"STANDARD_ND96isr_H100_V5": {cudaLTS, true}, "Standard_NC6s_v3": {cudaLTS, false},
	} {
		if d, f := Driver(size), Switched(size); d != want.driver || f != want.fabric {
			t.Errorf("%s: %s, %v", size, d, f)
		}
	}
}

func TestImage(t *testing.T) {
	entry := func(url, version string) string {
		return `{"GPUContainerImages":[{"downloadURL":"` + url + `","gpuVersion":{"latestVersion":"` + version + `"}}]}`
	}
	for text, want := range map[string]string{
		entry("mcr.microsoft.com/aks/aks-gpu-cuda-lts:*", "580.1-2026"): Repository + "cuda-lts:580.1-2026 580.1",
		entry("aks-gpu-cuda-lts", "580.1-2026"):                         Repository + "cuda-lts:580.1-2026 580.1",
		entry("mcr.microsoft.com/aks/aks-gpu-cuda:*", "580.1-2026"):     " ",
		entry("mcr.microsoft.com/aks/aks-gpu-cuda-lts:*", "580.1"):      " ",
		entry("mcr.microsoft.com/aks/aks-gpu-cuda-lts:*", "580.1-a b"):  " ",
		entry("mcr.microsoft.com/aks/aks-gpu-cuda-lts:*", "-2026"):      " ",
		"":   " ",
		"[]": " ",
	} {
		image, version := Image([]byte(text), cudaLTS)
		if got := image + " " + version; got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func FuzzImage(f *testing.F) {
	f.Add(`{"GPUContainerImages":[{"downloadURL":"a/aks-gpu-grid:*","gpuVersion":{"latestVersion":"5.1-2"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		image, version := Image([]byte(text), grid)
		if (image == "") != (version == "") || image != "" && !strings.HasPrefix(image, Repository+grid+":") {
			t.Errorf("%q %q", image, version)
		}
	})
}

func TestResources(t *testing.T) {
	s := Settings{Size: "Standard_NC4as_T4_v3", Driver: cudaLTS, Install: true, Image: Repository + "cuda-lts:580.1-2026", Version: "580.1"}
	containerd := &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}
	rs, err := Resources(s, Inputs{Source: "oci://" + s.Image, After: []desired.ID{containerd.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	st := golden.State(t, append(rs, containerd))
	text := st.Lookup(desired.FileID(unitFile)).(*desired.File).Content.Data()
	for _, line := range []string{"Before=kubelet.service\n", "ExecStart=/opt/azure/containers/aks-node-controller node gpu\n", "TimeoutStartSec=14min\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s in %s", line, text)
		}
	}
	if got := string(golden.File(t, st, kubeletDropIn).Content.Data()); !strings.HasSuffix(got, "[Unit]\nRequires="+Unit+"\nAfter="+Unit+"\n") {
		t.Errorf("kubelet starts without a driver:\n%s", got)
	}
	got, err := Read(st.Lookup(desired.FileID(SettingsFile)).(*desired.File).Content.Data())
	if err != nil || !cmp.Equal(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	skipped, err := Resources(Settings{Skipped: true}, Inputs{})
	if err != nil || golden.State(t, skipped).Lookup(desired.FileID(kubeletDropIn)) != nil {
		t.Errorf("kubelet waits for a driver that others see to: %v", err)
	}
	if _, err := Read([]byte("x")); err == nil {
		t.Error("no settings are read")
	}
}

func TestServices(t *testing.T) {
	none := func(string) bool { return false }
	kubelet, machine := &desired.Unit{Name: "kubelet.service", Enablement: desired.Enabled}, &desired.Unit{Name: Unit, Enablement: desired.Enabled}
	for name, c := range map[string]struct {
		s    Services
		line string
		in   string
	}{
		"whole GPUs":    {Services{There: none}, "ExecStart=\nExecStart=/usr/bin/nvidia-device-plugin --pass-device-specs\n", dropIn(DevicePlugin, "10-device-plugin-config.conf")},
		"partitions":    {Services{There: none, Partitioned: true}, "nvidia-device-plugin --mig-strategy single --pass", dropIn(DevicePlugin, "10-device-plugin-config.conf")},
		"kinds":         {Services{There: none, Partitioned: true, Mixed: true}, "--mig-strategy mixed --pass", dropIn(DevicePlugin, "10-device-plugin-config.conf")},
		"kinds of none": {Services{There: none, Mixed: true}, "nvidia-device-plugin --pass", dropIn(DevicePlugin, "10-device-plugin-config.conf")},
		"allocation": {Services{There: none, DRA: true, Node: "node-1"}, "--kubeconfig /var/lib/kubelet/kubeconfig --container-driver-root / --image-name \"\" --node-name=node-1\n",
			dropIn(DRADriver, "10-dra-driver-nvidia-gpu.conf")},
		"figures":            {Services{There: none}, "--address \":19400\"\n", dropIn(exporter, "10-aks-override.conf")},
		"figures' collector": {Services{There: none, DRA: true}, "PartOf=" + DRADriver, dropIn(collector, "10-berth.conf")},
	} {
		st := golden.State(t, append(c.s.Resources(), kubelet, machine))
		if f, ok := st.Lookup(desired.FileID(c.in)).(*desired.File); !ok || !strings.Contains(string(f.Content.Data()), c.line) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if rs := NoServices(func(name string) bool { return name == exporter }); len(rs) != 1 || rs[0].ID() != desired.UnitID(exporter) {
		t.Error(rs)
	}
}

func TestPartitions(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		layout  []string
		want    []Partition
		unknown string
	}{
		"whole":        {"", nil, nil, ""},
		"of one size":  {"MIG2g", nil, []Partition{{"14", "2g"}, {"14", "2g"}, {"14", "2g"}}, ""},
		"a layout":     {"MIG1g", []string{"MIG3g", "1g.5gb"}, []Partition{{"9", "3g"}, {"1g.5gb", "1g"}}, ""},
		"no profile":   {"MIG9g", nil, nil, "MIG9g"},
		"no partition": {"", []string{"MIG1g", "1g.5gb -h"}, nil, "1g.5gb -h"},
	} {
		got, unknown := Partitions(c.profile, c.layout)
		if diff := cmp.Diff(c.want, got); diff != "" || unknown != c.unknown {
			t.Errorf("%s: %q %s", name, unknown, diff)
		}
	}
}
