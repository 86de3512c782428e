// Package azure speaks to Azure: the instance metadata service of virtual machines,
// the agent of Azure Arc, Microsoft Entra ID, Azure Container Registry. It gives the
// tokens with which a machine shows a cluster's API server and registries who it is, and
// what the cloud says of the machine.
//
// The Azure SDK is not linked: a token is one or two plain requests, and the rules
// that matter (no proxy, no redirect, loopback only, which file is sent) are ours to
// keep.
package azure
