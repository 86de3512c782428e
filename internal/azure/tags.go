package azure

import (
	"net/netip"
	"strings"

	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
)

// metadataCompute are the tags of the virtual machine: its owner's words, beside
// the configuration.
type metadataCompute struct {
	Tags []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"tagsList"`
}

// rotationTag takes the serving certificate out of the cluster's hands.
const rotationTag = "aks-disable-kubelet-serving-certificate-rotation"

// packagesTag has kubelet and kubectl come from the image's packages.
const packagesTag = "ShouldEnforceKubePMCInstall"

// skipDriverTag leaves drivers of GPUs to others.
const skipDriverTag = "SkipGpuDriverInstall"

// manageTag has services for GPUs run, whatever the contract says.
const manageTag = "EnableManagedGPUExperience"

// on reads a tag as the published scripts do: the name somewhere in it, in any case,
// and true somewhere in the value.
func (c metadataCompute) on(tag string) bool {
	for _, t := range c.Tags {
		if strings.Contains(strings.ToLower(t.Name), strings.ToLower(tag)) && strings.Contains(strings.ToLower(t.Value), "true") {
			return true
		}
	}
	return false
}

// gpuTagsWere are the GPU settings that the last run made of the tags that it knew.
func gpuTagsWere(h host.FS) gpu.Settings {
	b, err := h.ReadFile(gpu.SettingsFile)
	if err != nil {
		return gpu.Settings{}
	}
	s, _ := gpu.Read(b) // what is no settings says nothing of tags
	return s
}

// apiServer reads a tag as the published agent does: by its whole name, in any case.
func (c metadataCompute) apiServer() netip.Addr {
	for _, t := range c.Tags {
		if strings.EqualFold(t.Name, hostsagent.Tag) {
			return hostsagent.Address(t.Value)
		}
	}
	return netip.Addr{}
}

// was is what the last run knew of a tag: it left a variable for it.
func was(h host.FS, variable string) bool {
	b, err := h.ReadFile(kubelet.FlagsFile)
	return err == nil && strings.Contains("\n"+string(b), "\n"+variable+"=")
}
