package hosttest

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// capability lets a file's program bind low ports: version 2, effective, of
// capabilities(7).
var capability = []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// attached checks the extended attributes of a path, except those that the
// machine gives by itself.
func attached(t *testing.T, h host.FS, p string, want map[string][]byte) {
	t.Helper()
	got, err := h.Xattrs(p)
	must(t, err)
	delete(got, "security.selinux")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", p, diff)
	}
}

func xattrs(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	attached(t, h, dir+"/f", map[string][]byte{})
	long := bytes.Repeat([]byte("0123456789"), 300)
	all := map[string][]byte{"user.a": []byte("b\x00c"), "user.empty": {}, "user.long": long, "trusted.x": []byte("y")}
	for _, p := range []string{dir + "/f", dir} {
		before := lstat(t, h, p)
		for name, value := range all {
			must(t, h.SetXattr(p, name, []byte("first")))
			must(t, h.SetXattr(p, name, value))
		}
		attached(t, h, p, all)
		if after := lstat(t, h, p); after.ChangeTime.Before(before.ChangeTime) || !after.ModTime.Equal(before.ModTime) {
			t.Errorf("%s was %+v, is %+v", p, before, after)
		}
	}
	must(t, h.Link(dir+"/f", dir+"/g"))
	must(t, h.Rename(dir+"/g", dir+"/h"))
	attached(t, h, dir+"/h", all)
	must(t, h.SyncFile(dir+"/h"))
}

func xattrErrors(t *testing.T, h host.Host, dir string) {
	put(t, h, dir+"/f", "")
	must(t, h.Symlink("f", dir+"/l"))
	want(t, "user attribute of a link", h.SetXattr(dir+"/l", "user.a", []byte("b")), syscall.EPERM)
	attached(t, h, dir+"/l", map[string][]byte{})
	attached(t, h, dir+"/f", map[string][]byte{})
	must(t, h.SetXattr(dir+"/l", "trusted.a", []byte("b")))
	attached(t, h, dir+"/l", map[string][]byte{"trusted.a": []byte("b")})
	attached(t, h, dir+"/f", map[string][]byte{})
	want(t, "unknown namespace", h.SetXattr(dir+"/f", strings.Repeat("x", 9)+".a", nil), syscall.EOPNOTSUPP)
	want(t, "attribute of nothing", h.SetXattr(dir+"/n", "user.a", nil), fs.ErrNotExist)
	_, err := h.Xattrs(dir + "/n")
	want(t, "attributes of nothing", err, fs.ErrNotExist)
	f, err := h.Create(dir + "/open")
	must(t, err)
	want(t, "unknown namespace of an open file", f.SetXattr(strings.Repeat("x", 9)+".a", nil), syscall.EOPNOTSUPP)
	must(t, f.Close())
	want(t, "attribute of a closed file", f.SetXattr("user.a", nil), os.ErrClosed)
}

func xattrsWritten(t *testing.T, h host.Host, dir string) {
	a := host.Attributes{Mode: 0o755, UID: 3, GID: 4, Xattrs: map[string][]byte{"user.a": []byte("b"), "security.capability": capability}}
	must(t, host.WriteFile(h, dir+"/f", []byte("program"), a))
	attached(t, h, dir+"/f", a.Xattrs)
	expect(t, h, dir+"/f", "program")
	sum := bytes.Repeat([]byte{0xff}, 32)
	must(t, host.WriteFile(h, dir+"/g", []byte("{}"), host.Attributes{Mode: 0o600, Provenance: sum}))
	attached(t, h, dir+"/g", map[string][]byte{host.ProvenanceName: sum})
	put(t, h, dir+"/f", "another")
	attached(t, h, dir+"/f", map[string][]byte{})
}

func capabilities(t *testing.T, h host.Host, dir string) {
	kept := map[string][]byte{"user.a": []byte("b")}
	f, err := h.Create(dir + "/f")
	must(t, err)
	for _, change := range []func() error{
		func() error { _, err := f.Write([]byte("x")); return err },
		func() error { return f.Chown(1, 1) },
		func() error { return h.Chown(dir+"/f", 2, 2) },
	} {
		must(t, h.SetXattr(dir+"/f", "user.a", []byte("b")))
		must(t, h.SetXattr(dir+"/f", "security.capability", capability))
		must(t, h.Chmod(dir+"/f", 0o755))
		attached(t, h, dir+"/f", map[string][]byte{"user.a": []byte("b"), "security.capability": capability})
		must(t, change())
		attached(t, h, dir+"/f", kept)
	}
	must(t, f.Close())
}
