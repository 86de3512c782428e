package hosttest

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

func badPaths(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	for _, p := range []string{"", "f", "./f", dir + "/", dir + "//f", dir + "/../f", dir + "/./f", dir + "/a\x00b"} {
		_, err := h.Lstat(p)
		want(t, "lstat "+p, err, syscall.EINVAL)
		_, err = h.Create(p)
		want(t, "create "+p, err, syscall.EINVAL)
		want(t, "link from "+p, h.Link(p, dir+"/g"), syscall.EINVAL)
		want(t, "link to "+p, h.Link(dir+"/f", p), syscall.EINVAL)
		want(t, "rename from "+p, h.Rename(p, dir+"/g"), syscall.EINVAL)
		want(t, "rename to "+p, h.Rename(dir+"/f", p), syscall.EINVAL)
	}
}

func missingParent(t *testing.T, h host.Host, dir string) {
	_, err := h.Create(dir + "/none/f")
	want(t, "create", err, fs.ErrNotExist)
	want(t, "mkdir", h.Mkdir(dir+"/none/f", 0o755), fs.ErrNotExist)
	put(t, h, dir+"/file", "")
	_, err = h.Lstat(dir + "/file/f")
	want(t, "lstat under a file", err, syscall.ENOTDIR)
	must(t, h.Symlink("none", dir+"/dangling"))
	_, err = h.Create(dir + "/dangling/f")
	want(t, "create through a dangling link", err, fs.ErrNotExist)
}

func rootDir(t *testing.T, h host.Host, _ string) {
	if !lstat(t, h, "/").Mode.IsDir() {
		t.Error("the root is no directory")
	}
	if _, err := h.ReadDir("/"); err != nil {
		t.Error(err)
	}
	want(t, "mkdir of the root", h.Mkdir("/", 0o755), fs.ErrExist)
}

func lastElement(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "kept")
	must(t, h.Symlink("f", dir+"/l"))
	if lstat(t, h, dir+"/l").Mode.Type() != fs.ModeSymlink {
		t.Error("lstat follows")
	}
	put(t, h, dir+"/l", "new")
	expect(t, h, dir+"/f", "kept")
	expect(t, h, dir+"/l", "new")
}

// parentLinks has the links of distributions: absolute, relative, upwards, one
// through the other.
func parentLinks(t *testing.T, h host.Host, dir string) {
	_, err := host.MkdirAll(h, dir+"/usr/lib/x")
	must(t, err)
	for name, target := range map[string]string{
		"absolute": dir + "/usr/lib",
		"relative": "usr/lib",
		"up":       "usr/../usr/./lib/x/..",
		"chain":    "relative",
		"far":      "../../../../../../../../../../.." + dir + "/usr/lib",
	} {
		must(t, h.Symlink(target, dir+"/"+name))
	}
	for _, name := range []string{"absolute", "relative", "up", "chain", "far"} {
		put(t, h, dir+"/"+name+"/x/"+name, name)
		expect(t, h, dir+"/usr/lib/x/"+name, name)
		if !lstat(t, h, dir+"/"+name+"/x").Mode.IsDir() {
			t.Errorf("%s/x is no directory", name)
		}
	}
	must(t, h.SyncDir(dir+"/chain/x"))
	must(t, h.Rename(dir+"/up/x/up", dir+"/absolute/moved"))
	expect(t, h, dir+"/usr/lib/moved", "up")
}

func foreignLinks(t *testing.T, h host.Host, dir string) {
	must(t, h.Mkdir(dir+"/d", 0o755))
	put(t, h, dir+"/d/f", "")
	must(t, h.Symlink("d", dir+"/theirs"))
	must(t, h.Chown(dir+"/theirs", 1000, 1000))
	must(t, h.Symlink("theirs", dir+"/ours"))
	for _, p := range []string{dir + "/theirs/f", dir + "/ours/f"} {
		_, err := h.ReadFile(p)
		want(t, "read "+p, err, host.ErrUnsafeParent)
		want(t, "remove "+p, h.Remove(p), host.ErrUnsafeParent)
		want(t, "rename to "+p, h.Rename(dir+"/d/f", p), host.ErrUnsafeParent)
		want(t, "set attribute of "+p, h.SetXattr(p, "user.x", nil), host.ErrUnsafeParent)
		want(t, "link to "+p, h.Link(dir+"/d/f", p), host.ErrUnsafeParent)
		want(t, "link from "+p, h.Link(p, dir+"/g"), host.ErrUnsafeParent)
		want(t, "rename from "+p, h.Rename(p, dir+"/g"), host.ErrUnsafeParent)
	}
}

func kernelLinks(t *testing.T, h host.Host, dir string) {
	for name, target := range map[string]string{"proc": "/proc", "sys": "/sys", "dev": "/dev", "deep": "/proc/sys/vm"} {
		must(t, h.Symlink(target, dir+"/"+name))
		p := dir + "/" + name + "/x"
		_, err := h.Lstat(p)
		want(t, "lstat "+p, err, host.ErrUnsafeParent)
		_, err = h.Create(p)
		want(t, "create "+p, err, host.ErrUnsafeParent)
	}
	must(t, h.Symlink("proc", dir+"/indirect"))
	_, err := h.ReadFile(dir + "/indirect/x")
	want(t, "read through two links", err, host.ErrUnsafeParent)
}

func linkLoop(t *testing.T, h host.Host, dir string) {
	must(t, h.Symlink("b", dir+"/a"))
	must(t, h.Symlink("a", dir+"/b"))
	_, err := h.Lstat(dir + "/a/x")
	want(t, "lstat", err, syscall.ELOOP)
}

func notAValue(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "kept")
	want(t, "value outside /proc", h.WriteValue(dir+"/f", []byte("1")), syscall.EINVAL)
	expect(t, h, dir+"/f", "kept")
}
