// Command azure prints the model of a virtual machine scale set whose instances become nodes.
// It is the shortest way from a node configuration to the Azure SDK:
//
//	go run . node.json >vmss.json
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v6"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "azure:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the file of a node configuration")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	cfg, err := nodeconfigutils.Unmarshal(text)
	if err != nil {
		return err
	}
	node, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(scaleSet(cfg.GetClusterConfig().GetLocation(), cfg.GetVmSize(), node))
}

// scaleSet holds what makes an instance a node; image, network and disks are the caller's.
func scaleSet(location, size string, node *nodeconfigutils.NodeBootstrapping) armcompute.VirtualMachineScaleSet {
	return armcompute.VirtualMachineScaleSet{
		Location: to.Ptr(location),
		SKU:      &armcompute.SKU{Name: to.Ptr(size), Capacity: to.Ptr[int64](1)},
		Properties: &armcompute.VirtualMachineScaleSetProperties{
			VirtualMachineProfile: &armcompute.VirtualMachineScaleSetVMProfile{
				OSProfile: &armcompute.VirtualMachineScaleSetOSProfile{
					ComputerNamePrefix: to.Ptr("node"),
					CustomData:         to.Ptr(node.CustomData),
				},
				ExtensionProfile: &armcompute.VirtualMachineScaleSetExtensionProfile{
					Extensions: []*armcompute.VirtualMachineScaleSetExtension{waiter(node.CSE)},
				},
			},
		},
	}
}

// waiter reports the result of provisioning. The command holds no secret; it stands in the protected
// settings so that both halves of the machine's start are treated alike.
func waiter(command string) *armcompute.VirtualMachineScaleSetExtension {
	return &armcompute.VirtualMachineScaleSetExtension{
		Name: to.Ptr("vmssCSE"),
		Properties: &armcompute.VirtualMachineScaleSetExtensionProperties{
			Publisher:               to.Ptr("Microsoft.Azure.Extensions"),
			Type:                    to.Ptr("CustomScript"),
			TypeHandlerVersion:      to.Ptr("2.0"),
			AutoUpgradeMinorVersion: to.Ptr(true),
			Settings:                map[string]any{},
			ProtectedSettings:       map[string]any{"commandToExecute": command},
		},
	}
}
