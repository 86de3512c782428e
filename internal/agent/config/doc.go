// Package config reads what the node agent is told: the published
// NodeAgentConfiguration, out of a directory that holds one file for each version,
// and the agent's own options.
package config
