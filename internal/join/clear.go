package join

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// clearDirs empties the directories that kubelet, the runtime and CNI plugins filled of
// what came since berth did. What the ledger knows is the engine's; what is mounted, and
// what stands behind a mount, is somebody else's.
func (l *leave) clearDirs(ctx context.Context) {
	mounts, err := l.Host.Mounts(ctx)
	if err != nil {
		l.failed("list mounts", err)
		return
	}
	c := clearing{host: l.Host, known: l.led.Ours, mounted: func(p string) bool {
		return slices.ContainsFunc(mounts, func(m host.Mount) bool { return m.Target == p })
	}}
	for _, dir := range ledger.FilledByOthers {
		if _, looked := l.led.Found[dir]; dir == linksDir || dir == ledger.VolumePlugins && !looked || slices.Contains(l.Keep, dir) {
			continue
		}
		found, known := l.found(dir)
		if !known {
			l.stay(dir + ": what was in it before is not known")
			continue
		}
		for _, s := range c.clear(dir, found) {
			l.stay(s)
		}
	}
}

// found is what stood in a directory before berth came; known is false where nobody
// knows. A directory that was not there has no mode.
func (l *leave) found(dir string) (f ledger.Found, known bool) {
	if l.led.Found == nil {
		info, err := ledger.Lstat(l.Host, dir)
		return f, err == nil && info == nil
	}
	f = l.led.Found[dir]
	return f, !f.Unknown
}

// restoreDirs gives directories that stay the mode and owner that they had.
func (l *leave) restoreDirs(context.Context) {
	for dir, f := range l.led.Found {
		info, err := ledger.Lstat(l.Host, dir)
		if err != nil || info == nil || f.Mode == 0 || dir == linksDir || !info.Mode.IsDir() {
			l.failed("look at "+dir, err)
			continue
		}
		if info.UID != f.UID || info.GID != f.GID {
			l.failed("restore the owner of "+dir, l.Host.Chown(dir, f.UID, f.GID))
		}
		if ledger.PermBits(info.Mode) != ledger.PermBits(f.Mode) {
			l.failed("restore the mode of "+dir, l.Host.Chmod(dir, ledger.PermBits(f.Mode)))
		}
	}
}

// clearing removes trees. What is known stays, a directory without what is in it; what
// is mounted stays with all that is in it. What went does not come back with a power cut: no
// later run would look for it.
type clearing struct {
	host           host.FS
	known, mounted func(p string) bool
}

// clear empties a directory of what was not found in it, and removes it where it was
// not there itself. It returns what stayed, and why.
func (c clearing) clear(dir string, found ledger.Found) (stayed []string) {
	names, err := c.host.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = c.sync(path.Dir(dir)) // the process before this one may have removed it
		}
		if err != nil {
			stayed = append(stayed, dir+": "+err.Error())
		}
		return stayed
	}
	for _, name := range names {
		if slices.Contains(found.Names, name) {
			continue
		}
		if err := c.remove(path.Join(dir, name)); err != nil {
			stayed = append(stayed, path.Join(dir, name)+": "+err.Error())
		}
	}
	if found.Mode != 0 || c.is(c.known, dir) || c.is(c.mounted, dir) {
		err = c.sync(dir)
	} else if err = c.removeName(dir); err == nil {
		err = c.sync(path.Dir(dir))
	}
	if err != nil {
		stayed = append(stayed, dir+": "+err.Error())
	}
	return stayed
}

// sync makes durable what a directory has, if it is there.
func (c clearing) sync(dir string) error {
	if err := c.host.SyncDir(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (clearing) is(what func(string) bool, p string) bool { return what != nil && what(p) }

// remove removes a tree, but for what stays and the directories above it.
func (c clearing) remove(p string) error {
	info, err := ledger.Lstat(c.host, p)
	if err != nil || info == nil || c.is(c.mounted, p) {
		return err
	}
	var errs []error
	if info.Mode.IsDir() {
		names, err := c.host.ReadDir(p)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, c.remove(path.Join(p, name)))
		}
	}
	err = errors.Join(errs...)
	switch {
	case err == nil && !c.is(c.known, p):
		return c.removeName(p)
	case err == nil && info.Mode.IsDir():
		return c.sync(p)
	}
	return err
}

// removeName removes a name. A directory in which something stays does, too.
func (c clearing) removeName(p string) error {
	err := ledger.RemoveIfThere(c.host, p)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return c.sync(p)
	}
	return err
}

// removeForGood removes a file so that no power cut brings it back, also where the process before
// this one removed it.
func (l *leave) removeForGood(p string) error {
	if err := ledger.RemoveIfThere(l.Host, p); err != nil {
		return err
	}
	return clearing{host: l.Host}.sync(path.Dir(p))
}
