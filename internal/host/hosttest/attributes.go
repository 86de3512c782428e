package hosttest

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

func attributes(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Symlink("f", dir+"/l"))
	must(t, h.Chown(dir+"/f", 5, 6))
	must(t, h.Chmod(dir+"/f", 0o711|fs.ModeSetuid))
	info := lstat(t, h, dir+"/f")
	if info.Mode != 0o711|fs.ModeSetuid || info.UID != 5 || info.GID != 6 {
		t.Errorf("file is %+v", info)
	}
	want(t, "chmod of a link", h.Chmod(dir+"/l", 0o600), syscall.EOPNOTSUPP)
	must(t, h.Chown(dir+"/l", 7, 8))
	if l, f := lstat(t, h, dir+"/l"), lstat(t, h, dir+"/f"); l.UID != 7 || f.UID != 5 {
		t.Errorf("chown of a link: link %+v, file %+v", l, f)
	}
	must(t, h.Chown(dir+"/f", -1, 9))
	if f := lstat(t, h, dir+"/f"); f.UID != 5 || f.GID != 9 {
		t.Errorf("chown of the group: %+v", f)
	}
	want(t, "chmod of nothing", h.Chmod(dir+"/n", 0o600), fs.ErrNotExist)
	want(t, "chown of nothing", h.Chown(dir+"/n", 0, 0), fs.ErrNotExist)
}

func openAttributes(t *testing.T, h host.Host, dir string) {
	f, err := h.Create(dir + "/f")
	must(t, err)
	must(t, f.Chown(3, 4))
	must(t, f.Chmod(0o755))
	must(t, h.Rename(dir+"/f", dir+"/g"))
	_, err = f.Write([]byte("later"))
	must(t, err)
	must(t, f.Close())
	if info := lstat(t, h, dir+"/g"); info.Mode != 0o755 || info.UID != 3 || info.GID != 4 {
		t.Errorf("file is %+v", info)
	}
	expect(t, h, dir+"/g", "later")
}

func changeShows(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "1")
	before := lstat(t, h, dir+"/f")
	if again := lstat(t, h, dir+"/f"); again != before {
		t.Errorf("nothing happened, but %+v became %+v", before, again)
	}
	put(t, h, dir+"/f", "1")
	after := lstat(t, h, dir+"/f")
	if before.Inode == after.Inode && before.ChangeTime.Equal(after.ChangeTime) {
		t.Error("a file that was replaced looks the same")
	}
	if after.ModTime.Before(before.ModTime) {
		t.Error("time went back")
	}
}
