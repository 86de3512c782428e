package hosttest

import (
	"context"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// immutable has files and a directory with the attribute of chattr(1). They are
// on the disk: not every file system has attributes.
func immutable(t *testing.T, h host.Host, _ string) {
	const dir = "/var/lib/berth-conformance"
	must(t, host.PrivateDir(h, dir))
	chattr := func(flag, p string) {
		t.Helper()
		_, err := h.Run(context.Background(), host.Command{Path: "chattr", Args: []string{flag, p}})
		must(t, err)
	}
	put(t, h, dir+"/f", "1")
	put(t, h, dir+"/g", "2")
	t.Cleanup(func() {
		must(t, h.Remove(dir+"/f"))
		must(t, h.Remove(dir+"/g"))
		must(t, h.Remove(dir))
	})
	for _, flag := range []string{"i", "a"} {
		chattr("+"+flag, dir+"/f")
		is(t, h, dir+"/f", true)
		fixedFile(t, h, dir)
		chattr("-"+flag, dir+"/f")
		is(t, h, dir+"/f", false)
		chattr("+"+flag, dir)
		is(t, h, dir, true)
		want(t, "remove in a fixed directory", h.Remove(dir+"/f"), syscall.EPERM)
		want(t, "rename in a fixed directory", h.Rename(dir+"/f", dir+"/n"), syscall.EPERM)
		must(t, h.Chmod(dir+"/f", 0o600))
		chattr("-"+flag, dir)
	}
}

func is(t *testing.T, h host.FS, p string, immutable bool) {
	t.Helper()
	if got := lstat(t, h, p).Immutable; got != immutable {
		t.Errorf("%s: immutable is %v", p, got)
	}
}

// fixedFile: nothing changes the file f, beside it everything goes on.
func fixedFile(t *testing.T, h host.Host, dir string) {
	t.Helper()
	want(t, "chmod", h.Chmod(dir+"/f", 0o600), syscall.EPERM)
	want(t, "chown", h.Chown(dir+"/f", 1, 1), syscall.EPERM)
	want(t, "set attribute", h.SetXattr(dir+"/f", "user.x", []byte("y")), syscall.EPERM)
	want(t, "remove", h.Remove(dir+"/f"), syscall.EPERM)
	want(t, "rename", h.Rename(dir+"/f", dir+"/n"), syscall.EPERM)
	want(t, "replace", h.Rename(dir+"/g", dir+"/f"), syscall.EPERM)
	want(t, "link", h.Link(dir+"/f", dir+"/n"), syscall.EPERM)
	must(t, h.Chmod(dir+"/g", 0o640))
	expect(t, h, dir+"/f", "1")
}
