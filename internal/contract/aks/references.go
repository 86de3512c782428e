package aks

import (
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/cloudca"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/hostsagent"
	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

// References are what a configuration leaves to others to say: to the machine's image
// which driver its GPUs take, to a tag of the virtual machine where a private API server
// is, to a cloud of its own which certificate authorities it has.
func References(doc *Document) component.References {
	c, r := doc.Config, component.References{}
	if c.GetPreProvisionOnly() {
		return r
	}
	if c.GetGpuConfig().GetEnableNvidia() {
		r.Files = []string{gpu.ComponentsFile}
	}
	if c.GetGpuConfig().GetEnableNvidia() && c.GetGpuConfig().GetConfigGpuDriver() {
		r.Driver, r.DriverPlatform = gpu.Repository+gpu.Driver(c.GetVmSize()), gpu.DriverPlatform
	}
	if decode.CustomCloud(c) {
		location := c.GetClusterConfig().GetLocation()
		r.CloudCA = &component.CloudCA{Legacy: cloudca.IsLegacy(location), Location: location, Known: cloudca.Prefix}
	}
	r.Interfaces = min(int(c.GetNetworkConfig().GetStandardSecondaryNicCount()), nics.Most)
	r.PrivateServer = c.GetEnableHostsConfigAgent() && hostsagent.Applies(c.GetApiServerConfig().GetApiServerName())
	if !r.PrivateServer {
		if check, err := (&translation{cfg: c}).apiCheck(); err == nil {
			r.Server = check
		}
	}
	return r
}
