package desired

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
)

// Life says how long berth keeps a file as it is.
type Life string

const (
	// Managed files are kept equal to the desired state.
	Managed Life = "managed"
	// Seed files are created if absent; then they are their owner's.
	Seed Life = "seed"
	// Transient files are wanted until another resource is in place and are
	// deleted then: a bootstrap kubeconfig, until a client certificate exists.
	Transient Life = "transient"
)

// Mode is a file's permission bits; it prints as octal text.
type Mode fs.FileMode

// Perm returns the bits for the os package.
func (m Mode) Perm() fs.FileMode { return fs.FileMode(m) & 0o7777 }

// String prints four octal digits.
func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalJSON prints the octal text.
func (m Mode) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(m.String())), nil }

// Written begins what berth generates in files with comments. By it a machine that has
// lost all of berth's state still tells such a file from one of others.
const Written = "# Written by berth"

// IsWritten says that a content begins with that line, after whichever sign begins a
// comment in its format.
func IsWritten(content []byte) bool {
	return bytes.HasPrefix(content, []byte(Written)) || bytes.HasPrefix(content, []byte("//"+Written[1:]))
}

// File is a regular file: content, mode and owner. Missing parents are made
// root-owned 0755.
type File struct {
	Base
	Path    string  `json:"path"`
	Content Content `json:"content"`
	Mode    Mode    `json:"mode"`
	// ModeNamed: the document itself gives a secret this mode, which may be wider
	// than 0600.
	ModeNamed bool `json:"modeNamed,omitempty"`
	// AnyMode: the document gives no mode. Mode is that of a file of this contract alone;
	// one that another contract has, too, has that one's mode and owner.
	AnyMode bool `json:"anyMode,omitempty"`
	UID     int  `json:"uid"`
	GID     int  `json:"gid"`
	Life    Life `json:"life"`
	// Until is the resource whose presence ends a transient file's life.
	Until ID `json:"until,omitempty"`
}

// FileID names the file at a path.
func FileID(p string) ID { return ID("file:" + p) }

// ID implements Resource.
func (f *File) ID() ID { return FileID(f.Path) }

// Kind implements Resource.
func (f *File) Kind() string { return "file" }

// FilePaths implements Resource.
func (f *File) FilePaths() []string { return []string{f.Path} }

// Validate implements Resource.
func (f *File) Validate() error {
	if err := cleanAbs(f.Path); err != nil {
		return err
	}
	if f.Content.IsSecret() && f.Mode&0o077 != 0 && !f.ModeNamed {
		return fmt.Errorf("a secret may not have mode %s", f.Mode)
	}
	if (f.Life == Transient) != (f.Until != "") {
		return errors.New("a transient file, and no other, names what ends it")
	}
	if f.Life != Managed && f.Life != Seed && f.Life != Transient {
		return fmt.Errorf("unknown life %q", f.Life)
	}
	return nil
}

// Directory is a directory with mode and owner; its entries are not its matter.
type Directory struct {
	Base
	Path string `json:"path"`
	Mode Mode   `json:"mode"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
}

// DirectoryID names the directory at a path.
func DirectoryID(p string) ID { return ID("directory:" + p) }

// ID implements Resource.
func (d *Directory) ID() ID { return DirectoryID(d.Path) }

// Kind implements Resource.
func (d *Directory) Kind() string { return "directory" }

// DirectoryPaths implements Resource.
func (d *Directory) DirectoryPaths() []string { return []string{d.Path} }

// Validate implements Resource.
func (d *Directory) Validate() error { return cleanAbs(d.Path) }

// Link is a symbolic link.
type Link struct {
	Base
	Path   string `json:"path"`
	Target string `json:"target"`
}

// LinkID names the link at a path.
func LinkID(p string) ID { return ID("link:" + p) }

// ID implements Resource.
func (l *Link) ID() ID { return LinkID(l.Path) }

// Kind implements Resource.
func (l *Link) Kind() string { return "link" }

// FilePaths implements Resource.
func (l *Link) FilePaths() []string { return []string{l.Path} }

// Validate implements Resource.
func (l *Link) Validate() error {
	if l.Target == "" {
		return errors.New("a link needs a target")
	}
	return cleanAbs(l.Path)
}

func cleanAbs(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
		return fmt.Errorf("path %q is not absolute and clean", p)
	}
	return nil
}
