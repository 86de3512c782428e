package converge

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// lstat is Lstat with nil for an absent path. A parent that is no directory
// means absent too.
func lstat(h host.FS, path string) (*host.Info, error) {
	info, err := h.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// readFile is ReadFile with ok false for a path at which there is no file.
func readFile(h host.FS, path string) (data []byte, ok bool, err error) {
	data, err = h.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || isNotDir(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// difference says in words how a path differs from a file with content and
// attributes; "" if it does not.
func difference(h host.FS, path string, info *host.Info, want []byte, a host.Attributes) (reason string, have []byte, err error) {
	switch {
	case info == nil:
		return "absent", nil, nil
	case !info.IsRegular():
		return "is " + describeType(h, path, info) + ", want a file", nil, nil
	}
	have, err = h.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	if !slices.Equal(have, want) {
		return "content differs", have, nil
	}
	return attributeDifference(info, a), have, nil
}

func attributeDifference(info *host.Info, a host.Attributes) string {
	if got := desired.Mode(permBits(info.Mode)); got != desired.Mode(permBits(a.Mode)) {
		return fmt.Sprintf("mode %s, want %s", got, desired.Mode(permBits(a.Mode)))
	}
	if info.UID != a.UID || info.GID != a.GID {
		return fmt.Sprintf("owner %d:%d, want %d:%d", info.UID, info.GID, a.UID, a.GID)
	}
	return ""
}

func attributesText(mode fs.FileMode, uid, gid int) string {
	return fmt.Sprintf("%s %d:%d", desired.Mode(permBits(mode)), uid, gid)
}

func permBits(m fs.FileMode) fs.FileMode {
	return m & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

func describeType(h host.FS, path string, info *host.Info) string {
	switch {
	case info.Mode.IsDir():
		return "a directory"
	case info.Mode&fs.ModeSymlink != 0:
		if target, err := h.Readlink(path); err == nil {
			return "a link to " + target
		}
		return "a link"
	case info.IsRegular():
		return "a file"
	}
	return "a special file"
}

// same says whether a path is still what was seen.
func same(a, b *host.Info) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := a.Inode == b.Inode && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID
	if a.Mode.IsDir() { // its entries, berth's temporary files among them, are others' matter
		return same
	}
	// A name that the file gained or lost moves its change time: the cache of
	// artifacts holds other names of installed programs.
	renamed := a.Links != b.Links && a.ModTime.Equal(b.ModTime)
	return same && a.Size == b.Size && (renamed || a.ChangeTime.Equal(b.ChangeTime))
}
