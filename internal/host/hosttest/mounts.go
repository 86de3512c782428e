package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// mountCases need the rights of root: to mount, and to forbid changes.
var mountCases = []testCase{
	{"immutable", immutable},
	{"mount and unmount", mountAndUnmount},
	{"mounts in each other", nestedMounts},
	{"mount: errors", mountErrors},
}

// on are the mounts on a target.
func on(t *testing.T, h host.Mounter, target string) []host.Mount {
	t.Helper()
	all, err := h.Mounts(t.Context())
	must(t, err)
	return slices.DeleteFunc(all, func(m host.Mount) bool { return m.Target != target })
}

func mountTable(t *testing.T, h host.Host, _ string) {
	if len(on(t, h, "/")) == 0 {
		t.Error("nothing is mounted on /")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Mounts(ctx)
	for _, err := range []error{err, h.Mount(ctx, host.Mount{}), h.Unmount(ctx, "/")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	want(t, "unmount of the root", h.Unmount(t.Context(), "/"), syscall.EBUSY)
}

// mountOn mounts a small file system on a new directory until the test ends.
func mountOn(t *testing.T, h host.Host, target string, options ...string) {
	t.Helper()
	must(t, h.Mkdir(target, 0o755))
	must(t, h.Mount(t.Context(), host.Mount{Source: "berth conformance", Target: target, Type: "tmpfs", Options: options}))
	t.Cleanup(func() { _ = h.Unmount(context.Background(), target) })
}

func mountAndUnmount(t *testing.T, h host.Host, dir string) {
	p := dir + "/a b\\c"
	mountOn(t, h, p, "nosuid", "noexec", "size=1024k", "mode=1777")
	got := on(t, h, p)
	if len(got) != 1 || got[0].Type != "tmpfs" || got[0].Source != "berth conformance" {
		t.Fatalf("mounted: %+v", got)
	}
	for _, o := range []string{"rw", "nosuid", "noexec", "size=1024k"} {
		if !slices.Contains(got[0].Options, o) {
			t.Errorf("option %s is missing in %v", o, got[0].Options)
		}
	}
	if lstat(t, h, p).Device == lstat(t, h, dir).Device {
		t.Error("the device is that of the directory below")
	}
	mountPoints(t, h, map[string]bool{"/": true, dir: false, p: true})
	put(t, h, p+"/f", "inside")
	expect(t, h, p+"/f", "inside")
	mountPoints(t, h, map[string]bool{p + "/f": false})
	want(t, "link out of it", h.Link(p+"/f", dir+"/f"), syscall.EXDEV)
	want(t, "rename out of it", h.Rename(p+"/f", dir+"/f"), syscall.EXDEV)
	want(t, "remove of what is mounted on", h.Remove(p), syscall.EBUSY)
	want(t, "rename of what is mounted on", h.Rename(p, dir+"/other"), syscall.EBUSY)
	must(t, h.Unmount(t.Context(), p))
	only(t, h, p)
	if got := on(t, h, p); len(got) > 0 {
		t.Errorf("still mounted: %+v", got)
	}
	mountPoints(t, h, map[string]bool{p: false})
	must(t, h.Remove(p))
}

func mountPoints(t *testing.T, h host.FS, want map[string]bool) {
	t.Helper()
	for p, is := range want {
		if got := lstat(t, h, p).MountPoint; got != is {
			t.Errorf("%s: something is mounted there: %v", p, got)
		}
	}
}

func nestedMounts(t *testing.T, h host.Host, dir string) {
	mountOn(t, h, dir+"/m")
	mountOn(t, h, dir+"/m/inner")
	put(t, h, dir+"/m/inner/f", "")
	want(t, "unmount below another", h.Unmount(t.Context(), dir+"/m"), syscall.EBUSY)
	must(t, h.Mount(t.Context(), host.Mount{Source: "over", Target: dir + "/m/inner", Type: "tmpfs"}))
	only(t, h, dir+"/m/inner")
	if got := on(t, h, dir+"/m/inner"); len(got) != 2 || got[1].Source != "over" {
		t.Errorf("mounted: %+v", got)
	}
	must(t, h.Unmount(t.Context(), dir+"/m/inner"))
	only(t, h, dir+"/m/inner", "f")
	must(t, h.Unmount(t.Context(), dir+"/m/inner"))
	must(t, h.Unmount(t.Context(), dir+"/m"))
	only(t, h, dir+"/m")
}

func mountErrors(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Mkdir(dir+"/d", 0o755))
	must(t, h.Symlink("d", dir+"/l"))
	mount := func(target, fsType string) error {
		return h.Mount(t.Context(), host.Mount{Source: "none", Target: target, Type: fsType})
	}
	want(t, "on nothing", mount(dir+"/n", "tmpfs"), fs.ErrNotExist)
	want(t, "on a file", mount(dir+"/f", "tmpfs"), syscall.ENOTDIR)
	want(t, "on a link", mount(dir+"/l", "tmpfs"), syscall.ENOTDIR)
	want(t, "of an unknown type", mount(dir+"/d", "berthfs"), syscall.ENODEV)
	want(t, "unmount of nothing", h.Unmount(t.Context(), dir+"/n"), fs.ErrNotExist)
	want(t, "unmount of a directory", h.Unmount(t.Context(), dir+"/d"), syscall.EINVAL)
}

func mountsRefused(t *testing.T, h host.Host, dir string) {
	_, err := h.Mounts(t.Context())
	for _, err := range []error{err, h.Mount(t.Context(), host.Mount{Target: dir, Type: "tmpfs"}), h.Unmount(t.Context(), dir)} {
		if !errors.Is(err, host.ErrOtherRoot) {
			t.Error(err)
		}
	}
}
