// Package bundle is one file that carries what a node needs to a site without
// a network: archives and programs, container images, a manifest and an ed25519
// signature.
//
// The file is a tar and an OCI image layout at once, so that tools for images
// read the images straight from it. Its bytes follow from the manifest: names,
// order, sizes and headers of all members are computed, and a file that differs
// in any of them is not opened. docs/bundle.md describes the format.
//
// The package reads from io.ReaderAt and writes to io.Writer: it touches no
// machine.
package bundle
