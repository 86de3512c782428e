package nodegpu

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// pciDevices has a directory for each device that the kernel found on a bus.
const pciDevices = "/sys/bus/pci/devices"

// The number of NVIDIA, and what the class of a display controller begins with: GPUs
// without a display are of that class, too.
const (
	nvidia  = "0x10de"
	display = "0x03"
)

// Present says whether the machine has an NVIDIA GPU.
func Present(h host.FS) bool {
	devices, err := h.ReadDir(pciDevices)
	if err != nil { // a machine without such a bus
		return false
	}
	for _, d := range devices {
		if attribute(h, d, "vendor") == nvidia && strings.HasPrefix(attribute(h, d, "class"), display) {
			return true
		}
	}
	return false
}

func attribute(h host.FS, device, name string) string {
	b, err := h.ReadFile(pciDevices + "/" + device + "/" + name)
	if err != nil { // a device that went meanwhile
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Await waits until the machine has an NVIDIA GPU, as long as one may take to appear.
func Await(ctx context.Context, h host.Host, limit time.Duration) error {
	start := h.Now()
	for {
		switch {
		case Present(h):
			return nil
		case h.Now().Sub(start) >= limit:
			return &exitcode.Error{Number: exitcode.GPUDriver, Err: ErrNoGPU,
				Remedy: "Give the node pool a size with NVIDIA GPUs, or leave gpu_config.enable_nvidia off: lspci -d 10de: lists what the machine has."}
		}
		if err := h.Sleep(ctx, time.Second); err != nil {
			return context.Cause(ctx)
		}
	}
}
