// Package azure speaks to Azure: the instance metadata service of virtual machines,
// the agent of Azure Arc, Microsoft Entra ID. It gives the tokens with which a machine
// shows a cluster's API server who it is.
//
// The Azure SDK is not linked: a token is one or two plain requests, and the rules
// that matter (no proxy, no redirect, loopback only, which file is sent) are ours to
// keep.
package azure
