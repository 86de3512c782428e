package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"
)

// TempName is where the next content of a path is prepared: in the same
// directory, under a name that a later run finds again.
func TempName(p string) string {
	dir, base := path.Split(p)
	return dir + ".berth." + base + ".new"
}

// Attributes are mode and owner of a file, and the extended attributes that it
// gets besides those of its own file system.
type Attributes struct {
	Mode     fs.FileMode
	UID, GID int
	Xattrs   map[string][]byte
	// Provenance becomes the attribute ProvenanceName where the file system takes it;
	// nil: none.
	Provenance []byte
}

// Prepare writes content durably under the temporary name of p. A leftover of
// an earlier run under that name is replaced.
func Prepare(h FS, p string, content []byte, a Attributes) error {
	return PrepareFunc(h, p, a, func(f File) error {
		_, err := f.Write(content)
		return err
	})
}

// PrepareFunc is Prepare with content from a function.
func PrepareFunc(h FS, p string, a Attributes, write func(File) error) error {
	tmp := TempName(p)
	f, err := createNew(h, tmp)
	if err != nil {
		return err
	}
	err = errors.Join(fill(f, a, write), f.Close())
	if err != nil {
		return errors.Join(err, h.Remove(tmp))
	}
	return nil
}

func createNew(h FS, tmp string) (File, error) {
	f, err := h.Create(tmp)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := h.Remove(tmp); err != nil {
		return nil, fmt.Errorf("remove leftover: %w", err)
	}
	return h.Create(tmp)
}

// setXattrs attaches what the file has to have, and its provenance if it can be had.
func setXattrs(f File, a Attributes) error {
	for _, name := range slices.Sorted(maps.Keys(a.Xattrs)) {
		if err := f.SetXattr(name, a.Xattrs[name]); err != nil {
			return err
		}
	}
	if a.Provenance == nil {
		return nil
	}
	if err := f.SetXattr(ProvenanceName, a.Provenance); !NoXattrs(err) {
		return err
	}
	return nil
}

// fill labels last: a change of content or owner drops capabilities.
func fill(f File, a Attributes, write func(File) error) error {
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chown(a.UID, a.GID); err != nil {
		return err
	}
	if err := f.Chmod(a.Mode); err != nil {
		return err
	}
	if err := setXattrs(f, a); err != nil {
		return err
	}
	return f.Sync()
}

// Commit gives what Prepare wrote its name. The name is durable after SyncDir
// of the directory.
func Commit(h FS, p string) error {
	tmp := TempName(p)
	if sameFile(h, tmp, p) {
		return h.Remove(tmp) // rename(2) does nothing between two names of one file
	}
	return h.Rename(tmp, p)
}

func sameFile(h FS, p, q string) bool {
	a, err := h.Lstat(p)
	if err != nil || a.Links < 2 {
		return false
	}
	b, err := h.Lstat(q)
	return err == nil && a.Inode == b.Inode && a.Device == b.Device
}

// WriteFile is Prepare, Commit and SyncDir: the file is whole or absent, and
// durable when it returns.
func WriteFile(h FS, p string, content []byte, a Attributes) error {
	if err := Prepare(h, p, content, a); err != nil {
		return err
	}
	if err := Commit(h, p); err != nil {
		return errors.Join(err, h.Remove(TempName(p)))
	}
	return h.SyncDir(path.Dir(p))
}

// MkdirAll makes a directory and its missing parents, mode 0755, and makes each
// new name durable. It returns the directories it made, outermost first. One that
// is there already is not synced: who made it and was killed before its SyncDir
// may have left it to the kernel's own write-back.
func MkdirAll(h FS, dir string) ([]string, error) {
	info, err := h.Lstat(dir)
	if err == nil && !info.Mode.IsDir() && info.Mode.Type() != fs.ModeSymlink {
		return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("exists and is not a directory")}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	made, err := MkdirAll(h, path.Dir(dir))
	if err != nil {
		return made, err
	}
	if err := h.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, dir), h.SyncDir(path.Dir(dir))
}

// NoLinks says whether a link was refused since the file system knows no second name of a
// file: link(2) has EPERM for it, network file systems have others.
func NoLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS)
}

// NoXattrs says whether an attribute was refused since the file system has none of its
// namespace, or since the process may not set it (trusted.* needs CAP_SYS_ADMIN in the
// first user namespace).
func NoXattrs(err error) bool {
	return errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS)
}
