package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Type is what stands at a name.
type Type string

// The types. Of Directory and Attributes, what is there stays and mode and owner
// alone are spoken of; Gone is a name that berth took away; Live is no name of the
// tree.
const (
	File       Type = "file"
	Link       Type = "link"
	Directory  Type = "directory"
	Attributes Type = "attributes"
	Gone       Type = "gone"
	Live       Type = "live"
)

// Standing is what stands at a name, or the state of what is no path: what berth
// put there, or what was there before.
type Standing struct {
	Type Type `json:"type"`
	// Sum is the sha256 of a file's content; "" where it is not berth's matter: a
	// download, a generated key, what a lost ledger said.
	Sum string `json:"sum,omitempty"`
	// Public content may be shown in a plan, whatever the mode.
	Public bool `json:"public,omitempty"`
	// Target is a link's.
	Target string      `json:"target,omitempty"`
	Mode   fs.FileMode `json:"mode,omitempty"`
	UID    int         `json:"uid,omitempty"`
	GID    int         `json:"gid,omitempty"`
	// Xattrs are extended attributes that came with a file.
	Xattrs map[string][]byte `json:"xattrs,omitempty"`
	// Value is live state: a kernel parameter's value, a unit's state.
	Value string `json:"value,omitempty"`
}

// Stays says that what is there stays, with other attributes.
func (s *Standing) Stays() bool { return s.Type == Directory || s.Type == Attributes }

// Attributes are mode, owner and extended attributes for the host.
func (s *Standing) Attributes() host.Attributes {
	return host.Attributes{Mode: s.Mode, UID: s.UID, GID: s.GID, Xattrs: s.Xattrs}
}

// SameAttributes compares mode and owner.
func (s *Standing) SameAttributes(o *Standing) bool {
	return s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID
}

// PermBits are the bits of a mode that chmod(2) sets.
func PermBits(m fs.FileMode) fs.FileMode {
	return m & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// Lstat is host.FS.Lstat with nil for an absent path. A parent that is no
// directory means absent too.
func Lstat(h host.FS, path string) (*host.Info, error) {
	info, err := h.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// ReadFile is host.FS.ReadFile with ok false for a path at which there is no file.
func ReadFile(h host.FS, path string) (data []byte, ok bool, err error) {
	data, err = h.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// RemoveIfThere is host.FS.Remove of a name that may be gone.
func RemoveIfThere(h host.FS, p string) error {
	if err := h.Remove(p); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// AttributeDifference says in words how mode or owner differ from those that are
// wanted; "" if they do not.
func AttributeDifference(info *host.Info, mode fs.FileMode, uid, gid int) string {
	if PermBits(info.Mode) != PermBits(mode) {
		return fmt.Sprintf("mode %s, want %s", octal(info.Mode), octal(mode))
	}
	if info.UID != uid || info.GID != gid {
		return fmt.Sprintf("owner %d:%d, want %d:%d", info.UID, info.GID, uid, gid)
	}
	return ""
}

// octal is a mode as chmod(1) takes it.
func octal(m fs.FileMode) desired.Mode {
	bits := desired.Mode(m.Perm())
	for bit, of := range map[fs.FileMode]desired.Mode{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			bits |= of
		}
	}
	return bits
}

// DescribeType names the type of what stands at a path.
func DescribeType(h host.FS, path string, info *host.Info) string {
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

// Same says whether a path is still what was seen.
func Same(a, b *host.Info) bool {
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
