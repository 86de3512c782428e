package gpu

import (
	"encoding/json"
	"strings"
)

// ComponentsFile is where an image of the cloud says which versions of drivers it was
// made with.
const ComponentsFile = "/opt/azure/components.json"

// The kinds of driver, as the repositories of their images are called.
const (
	cuda    = "cuda"
	cudaLTS = "cuda-lts"
	grid    = "grid"
	gridV20 = "grid-v20"
)

// Repository holds an image for each kind of driver.
const Repository = "mcr.microsoft.com/aks/aks-gpu-"

// DriverPlatform is what those images are made for.
const DriverPlatform = "linux/amd64"

// Driver is the kind of driver for a size of virtual machine.
func Driver(size string) string {
	size = strings.ToLower(size)
	switch {
	case rtxPro(size):
		return gridV20
	case converged[size]:
		return grid
	case strings.HasPrefix(size, "standard_nc") && !strings.Contains(size, "_v"): // the first generation
		return cuda
	}
	return cudaLTS
}

// converged are the sizes whose driver serves graphics and computation, as published.
var converged = map[string]bool{
	"standard_nv6ads_a10_v5": true, "standard_nv12ads_a10_v5": true, "standard_nv18ads_a10_v5": true,
	"standard_nv36ads_a10_v5": true, "standard_nv36adms_a10_v5": true, "standard_nv72ads_a10_v5": true,
	"standard_nc8ads_a10_v4": true, "standard_nc16ads_a10_v4": true, "standard_nc32ads_a10_v4": true,
}

// rtxPro are the sizes of a series that takes a newer driver: those published, and
// others that it may get.
func rtxPro(size string) bool {
	return strings.HasPrefix(size, "standard_nc") && strings.HasSuffix(size, "_xl_rtxpro6000bse_v6")
}

// Switched says whether GPUs of a size are joined by a switch that takes NVIDIA's
// Fabric Manager, as published.
func Switched(size string) bool { return switched[strings.ToLower(size)] }

var switched = map[string]bool{
	"standard_nd96asr_v4": true, "standard_nd96ams_v4": true, "standard_nd96ams_a100_v4": true, "standard_nd96amsr_a100_v4": true,
	"standard_nd112asr_a100_v4": true, "standard_nd112amsr_a100_v4": true, "standard_nd120asr_a100_v4": true, "standard_nd120amsr_a100_v4": true,
	"standard_nd46s_h100_v5": true, "standard_nd48s_h100_v5": true, "standard_nd50s_h100_v5": true,
	"standard_nd92is_h100_v5": true, "standard_nd96is_h100_v5": true, "standard_nd100is_h100_v5": true,
	"standard_nd92isr_h100_v5": true, "standard_nd96isr_h100_v5": true, "standard_nd100isr_h100_v5": true,
	"standard_nd96is_h200_v5": true, "standard_nd96isr_h200_v5": true, "standard_nd96isrf_h200_v5": true,
}

// Image is the image of a driver, and the driver's version, as the text of
// ComponentsFile has them; "" where it names none.
func Image(components []byte, driver string) (image, version string) {
	var all struct {
		Images []struct {
			URL     string `json:"downloadURL"`
			Version struct {
				Latest string `json:"latestVersion"`
			} `json:"gpuVersion"`
		} `json:"GPUContainerImages"`
	}
	if json.Unmarshal(components, &all) != nil {
		return "", ""
	}
	for _, i := range all.Images {
		repository, _, _ := strings.Cut(i.URL[strings.LastIndexByte(i.URL, '/')+1:], ":")
		version, build, ok := strings.Cut(i.Version.Latest, "-")
		if repository == "aks-gpu-"+driver && ok && version != "" && tagged(build) {
			return Repository + driver + ":" + i.Version.Latest, version
		}
	}
	return "", ""
}

// tagged says whether the build of an image can end its tag.
func tagged(build string) bool {
	return build != "" && strings.Trim(build, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}
