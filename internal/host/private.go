package host

import (
	"errors"
	"io/fs"
	"path"
)

// PrivateDir makes a directory of mode 0700, with missing parents of 0755, and
// takes from one that is there what others may do in it. A link is left as it is:
// somebody moved the directory. What it changed is durable.
func PrivateDir(h FS, dir string) error {
	info, err := h.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makePrivate(h, dir)
	case err != nil || !info.Mode.IsDir() || info.Mode.Perm() == 0o700:
		return err
	}
	if err := h.Chmod(dir, 0o700); err != nil {
		return err
	}
	return h.SyncDir(dir)
}

func makePrivate(h FS, dir string) error {
	if _, err := MkdirAll(h, path.Dir(dir)); err != nil {
		return err
	}
	if err := h.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return h.SyncDir(path.Dir(dir))
}
