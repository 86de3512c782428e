package host

import (
	"path"
	"strings"
	"testing"
)

func TestSplice(t *testing.T) {
	for _, c := range []struct{ dir, target, rest, want string }{
		{"/", "usr/lib", "x/y", "/usr/lib/x/y"},
		{"/etc/", "/run/x", "", "/run/x"},
		{"/a/b", "../c", "d", "/a/c/d"},
		{"/a", "../../../..", "x", "/x"},
	} {
		if got := Splice(c.dir, c.target, c.rest); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}

func TestKernelTrees(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"/etc/x", "/proc/x", true},
		{"/etc/x", "/process", false},
		{"/etc/x", "/dev", true},
		{"/sys/class/net/eth0", "/sys/devices/x", false},
		{"/proc/self/root", "/", false},
	} {
		if got := LeadsAstray(c.from, c.to); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add("/a/b", "../../c", "d/e")
	f.Fuzz(func(t *testing.T, dir, target, rest string) {
		if strings.ContainsRune(dir+target+rest, 0) {
			return
		}
		if err := CheckPath(Splice(path.Join("/", dir), target, rest)); err != nil {
			t.Error(err)
		}
	})
}
