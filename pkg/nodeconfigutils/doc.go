// Package nodeconfigutils is for clients that create virtual machines: it turns a node configuration into
// the CustomData of a machine and the command of its CustomScript extension, and reads back what the
// command reported.
//
// Its output is deterministic: the same configuration gives the same bytes, so a client can compare them.
package nodeconfigutils

import "github.com/berth-dev/berth/internal/unitname"

const (
	// ConfigPath is where a machine keeps its configuration.
	ConfigPath = "/opt/azure/containers/aks-node-controller-config.json"

	// Unit is the service in the image that provisions the node.
	Unit = unitname.Controller

	// CSE is the command of the CustomScript extension: it waits for the end of provisioning and prints
	// the result.
	CSE = "/opt/azure/containers/aks-node-controller provision-wait"

	// Limit is the most CustomData that Azure takes, in base64 characters (64 KiB before base64).
	Limit = 87380
)
