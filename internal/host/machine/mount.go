package machine

import (
	"context"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// mounts is the table of this machine.
type mounts struct{ t tree }

// Mounts implements host.Mounter.
func (m mounts) Mounts(ctx context.Context) ([]host.Mount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := m.t.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMountinfo(string(text))
}

// Mount implements host.Mounter.
func (m mounts) Mount(ctx context.Context, x host.Mount) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	flags, data := mountOptions(x.Options)
	return m.t.at("mount", x.Target, func(dir int, name string) error {
		return byHandle(dir, name, func(p string) error { return unix.Mount(x.Source, p, x.Type, flags, data) })
	})
}

// Unmount implements host.Mounter. The way there is by the parent: a handle of
// what is mounted would keep it busy.
func (m mounts) Unmount(ctx context.Context, target string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.t.at("unmount", target, func(dir int, name string) error {
		if target == "/" { // the kernel would take it for an order to make it read-only
			return unix.EBUSY
		}
		return unix.Unmount("/proc/self/fd/"+strconv.Itoa(dir)+"/"+name, unix.UMOUNT_NOFOLLOW)
	})
}

// mountFlags are the options that mount(2) takes as bits.
var mountFlags = map[string]uintptr{
	"defaults": 0, "rw": 0, "ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"sync": unix.MS_SYNCHRONOUS, "noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"strictatime": unix.MS_STRICTATIME, "lazytime": unix.MS_LAZYTIME,
}

// mountOptions parts the options into bits and what the file system reads.
func mountOptions(options []string) (flags uintptr, data string) {
	var rest []string
	for _, o := range options {
		bit, known := mountFlags[o]
		if flags |= bit; !known {
			rest = append(rest, o)
		}
	}
	return flags, strings.Join(rest, ",")
}
