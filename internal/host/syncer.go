package host

// Syncer is what else a host can do for what others wrote: SyncFS makes durable
// all that stands on the file system that holds a directory (syncfs(2)). It is
// no effect that a plan is made of. Only the real machine is one.
type Syncer interface {
	SyncFS(dir string) error
}
