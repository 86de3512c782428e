// Package nodeinit is for cluster managers: it renders what a new machine is given at its creation, so that
// berth's node agent starts on it and fetches the rest from the cluster.
//
// A document holds the cluster's CA, a bootstrap token, the machine's name, the agent's configuration and one
// unit, gardener-node-init.service. The unit fetches the agent where the image does not have it, and calls its
// bootstrap command, which takes it from there. Paths and names are those that cluster managers know.
//
// The output is deterministic: the same data gives the same bytes. Nothing of it touches SSH or accounts:
// who can log in to the image can log in, whether or not the agent ever starts.
package nodeinit

import "github.com/berth-dev/berth/internal/unitname"

const (
	// Unit is the service that fetches and starts the agent. The agent disables it once it runs.
	Unit = unitname.AgentInit

	// Dir is where the agent finds the files.
	Dir = "/var/lib/gardener-node-agent"

	// Installed is where a fetched agent is put.
	Installed = "/opt/bin/gardener-node-agent"

	// BootstrapTokenPlaceholder stands for the token where a machine controller fills it in.
	BootstrapTokenPlaceholder = "<<BOOTSTRAP_TOKEN>>"

	// MachineNamePlaceholder stands for the machine's name where a machine controller fills it in.
	MachineNamePlaceholder = "<<MACHINE_NAME>>"

	// Limit is the most that every cloud takes: 16 KiB, before base64.
	Limit = 16 << 10
)
