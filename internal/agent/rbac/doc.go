// Package rbac is what a cluster needs so that node agents may do their work, and
// nothing else: they read Secrets by name, and an admission policy holds each of
// them to its own Node and its own Lease.
package rbac
