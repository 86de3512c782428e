package host

import "context"

// Mounter keeps the table of mounts. Under another root every method answers
// ErrOtherRoot.
type Mounter interface {
	// Mounts lists what is mounted, in the kernel's order: of two on one target the
	// later covers the earlier.
	Mounts(ctx context.Context) ([]Mount, error)
	// Mount mounts a file system of its own; bind mounts are not offered. The
	// target must exist and is not followed. Once begun it does not heed ctx.
	Mount(ctx context.Context, m Mount) error
	// Unmount takes away what was mounted last on a target: EINVAL if nothing is,
	// EBUSY while it is in use and for the root.
	Unmount(ctx context.Context, target string) error
}

// Mount is one mounted file system.
type Mount struct {
	// Source is a device, or a word where the type needs none.
	Source string
	Target string
	// Type is the file system: tmpfs, ext4, …
	Type string
	// Options are those of mount(8). What is mounted has those of the mount itself
	// first, then those of the file system, as the kernel prints them.
	Options []string
}
