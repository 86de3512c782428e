// Package remote asks OCI registries: for manifests, and for blobs that continue where
// a download was cut.
//
// It asks each thing once: when and how often to ask again is its caller's
// affair, and its errors say what that needs. The flow of challenges and tokens
// is that of oras-go; it refuses to carry credentials to a token service on a
// private address under another name than the registry's.
//
// Source: the OCI distribution specification, version 1.1.
package remote
