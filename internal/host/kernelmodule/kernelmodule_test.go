package kernelmodule

import (
	"fmt"
	"os"
	"path"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLoaded: what is built in can be asked as what is loaded; what may be either way is
// not taken for missing.
func TestLoaded(t *testing.T) {
	const modules, release, builtin = "proc/modules", "proc/sys/kernel/osrelease", "modules/6.1.0/modules.builtin"
	for name, c := range map[string]struct {
		files   map[string]string
		want    bool
		unknown bool
	}{
		"loaded":           {map[string]string{modules: "x 1 0\nnf_tables 1 0 - Live\n"}, true, false},
		"with parameters":  {map[string]string{"sys/module/nf_tables/version": "", modules: ""}, true, false},
		"without modules":  {nil, true, false},
		"built in":         {map[string]string{modules: "", release: "6.1.0\n", "usr/lib/" + builtin: "kernel/net/netfilter/nf_tables.ko\n"}, true, false},
		"of an older path": {map[string]string{modules: "", release: "6.1.0\n", "lib/" + builtin: "kernel/net/netfilter/nf_tables.ko\n"}, true, false},
		"neither":          {map[string]string{modules: "xnf_tables 1 0\n", release: "6.1.0\n", "lib/" + builtin: "kernel/net/netfilter/xnf_tables.ko\n"}, false, false},
		"no list":          {map[string]string{modules: "", release: "6.1.0\n", "lib/modules/6.2.0/modules.builtin": "kernel/nf_tables.ko\n"}, false, true},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			if err := os.MkdirAll(path.Join(root, path.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := Loaded(root, "nf_tables"); got != c.want || (err != nil) != c.unknown {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestMissing: what the kernel refuses or can't do now is there.
func TestMissing(t *testing.T) {
	for number, want := range map[unix.Errno]bool{
		unix.EINVAL: true, unix.EOPNOTSUPP: true, unix.EAFNOSUPPORT: true, unix.EPROTONOSUPPORT: true, unix.EPERM: false, unix.ENOBUFS: false,
	} {
		if got := Missing(fmt.Errorf("list: %w", number)); got != want {
			t.Errorf("%v: %t", number, got)
		}
	}
	if Missing(nil) {
		t.Error("no error")
	}
}
