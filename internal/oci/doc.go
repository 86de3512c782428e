// Package oci knows what OCI registries, image layouts and containerd's content
// store have in common: references, manifests, the choice of a platform, the way
// from an index to layers, and single files out of the layers of an image.
//
// It touches neither network nor machine: its callers open what it asks for.
//
// Sources: the OCI image and distribution specifications, version 1.1;
// containerd for the choice of a platform.
package oci
