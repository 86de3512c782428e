// Package imagestore puts container images into containerd through containerd's
// own API, without a program in between: kubelet finds them as if it had pulled
// them.
//
// An import sends the blobs that this machine's platform needs and that
// containerd lacks, each verified by containerd against its digest, under a
// lease that keeps them from containerd's garbage collection. Names come last:
// an image is visible whole or not at all. An import that was cut off goes on
// where it stopped: what containerd has received of a blob stays for a day.
//
// It speaks the services content, images and leases, which containerd 1.7 and
// 2.x have in common.
package imagestore
