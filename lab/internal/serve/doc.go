// Package serve holds what a node of the lab talks to besides its API server:
// artifacts over HTTP, an OCI registry, the instance metadata service and
// WireServer, and servers that misbehave in known ways.
//
// Nothing here chooses an address or enters a namespace: the caller listens.
package serve
