package machine

import (
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

var _ host.Syncer = (*Host)(nil)

// SyncFS implements host.Syncer.
func (t tree) SyncFS(p string) error {
	return t.at("syncfs", p, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Syncfs(fd)
	})
}
