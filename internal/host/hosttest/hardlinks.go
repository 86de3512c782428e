package hosttest

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// linked makes a file with a second name.
func linked(t *testing.T, h host.Host, dir string) {
	t.Helper()
	put(t, h, dir+"/a", "content")
	must(t, h.Link(dir+"/a", dir+"/b"))
}

func hardLinks(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/a", "content")
	before := lstat(t, h, dir+"/a")
	must(t, h.Mkdir(dir+"/d", 0o755))
	must(t, h.Link(dir+"/a", dir+"/d/b"))
	a, b := lstat(t, h, dir+"/a"), lstat(t, h, dir+"/d/b")
	if a != b || a.Links != 2 || before.Links != 1 || a.Inode != before.Inode || a.Device == 0 {
		t.Errorf("was %+v\nis  %+v\nand %+v", before, a, b)
	}
	if a.ChangeTime.Before(before.ChangeTime) {
		t.Error("the change time went back")
	}
	must(t, h.Chmod(dir+"/a", 0o600))
	must(t, h.Chown(dir+"/d/b", 3, 4))
	if a, b = lstat(t, h, dir+"/a"), lstat(t, h, dir+"/d/b"); a != b || a.Mode != 0o600 || a.UID != 3 {
		t.Errorf("attributes are not one: %+v and %+v", a, b)
	}
	must(t, h.Remove(dir+"/a"))
	expect(t, h, dir+"/d/b", "content")
	if b = lstat(t, h, dir+"/d/b"); b.Links != 1 {
		t.Errorf("%d names, want 1", b.Links)
	}
}

func hardLinkOfLink(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Symlink("f", dir+"/l"))
	must(t, h.Link(dir+"/l", dir+"/m"))
	target, err := h.Readlink(dir + "/m")
	must(t, err)
	if target != "f" || lstat(t, h, dir+"/f").Links != 1 {
		t.Errorf("the link was followed: target %q", target)
	}
}

func hardLinkErrors(t *testing.T, h host.Host, dir string) {
	linked(t, h, dir)
	must(t, h.Mkdir(dir+"/d", 0o755))
	must(t, h.Symlink("nowhere", dir+"/l"))
	for _, taken := range []string{"a", "b", "d", "l"} {
		want(t, "link over "+taken, h.Link(dir+"/a", dir+"/"+taken), fs.ErrExist)
	}
	want(t, "link over the root", h.Link(dir+"/a", "/"), fs.ErrExist)
	want(t, "link of nothing", h.Link(dir+"/n", dir+"/m"), fs.ErrNotExist)
	want(t, "link into nothing", h.Link(dir+"/a", dir+"/n/m"), fs.ErrNotExist)
	want(t, "link of a directory", h.Link(dir+"/d", dir+"/m"), syscall.EPERM)
	only(t, h, dir, "a", "b", "d", "l")
}

// renameHardLinks: a rename onto the same file does nothing; onto another one it
// takes a name from it.
func renameHardLinks(t *testing.T, h host.Host, dir string) {
	linked(t, h, dir)
	must(t, h.Rename(dir+"/a", dir+"/b"))
	only(t, h, dir, "a", "b")
	put(t, h, dir+"/c", "other")
	must(t, h.Rename(dir+"/c", dir+"/b"))
	expect(t, h, dir+"/a", "content")
	expect(t, h, dir+"/b", "other")
	if n := lstat(t, h, dir+"/a").Links; n != 1 {
		t.Errorf("%d names, want 1", n)
	}
	only(t, h, dir, "a", "b")
}

func hardLinkAcross(t *testing.T, h host.Host, dir string) {
	want(t, "link of a kernel value", h.Link(Value, dir+"/v"), syscall.EXDEV)
	if lstat(t, h, Value).Device == lstat(t, h, dir).Device {
		t.Error("the kernel's file system is that of the files")
	}
	only(t, h, dir)
}
