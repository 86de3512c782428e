package unitlife_test

import (
	"fmt"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// areas gives a machine two swap areas and units of type swap for them: a file, and a disk by
// its UUID, for whose other names systemd makes units of its own.
const areas = `set -e
for f in file disk; do
	fallocate -l 16M /var/life-$f
	chmod 600 /var/life-$f
done
mkswap -q /var/life-file
mkswap -q -U %s /var/life-disk
losetup -f /var/life-disk
udevadm settle`

// generated is where the units are, and wanting what has swap.target pull them in: with those
// links systemd comes across a unit before it reads in /proc/swaps that its area is in use.
const (
	generated = "/run/systemd/system/"
	wanting   = generated + "swap.target.wants/"
)

const noAreas = `swapoff /var/life-file
losetup -j /var/life-disk -O NAME -n | while read d; do swapoff $d; losetup -d $d; done
rm /var/life-file /var/life-disk`

// TestStopSwap stops units that are masked and of which systemd has forgotten the areas: it
// has read its definitions since, or reads them meanwhile.
func TestStopSwap(t *testing.T) {
	if !ownKernel() {
		return
	}
	const (
		uuid = "7c0b5d14-5f0c-4a40-8f4b-6b1f3d3c2a01"
		disk = `dev-disk-by\x2duuid-7c0b5d14\x2d5f0c\x2d4a40\x2d8f4b\x2d6b1f3d3c2a01.swap`
		file = "var-life\\x2dfile.swap"
	)
	w := real(t)
	shell(t, fmt.Sprintf(areas, uuid))
	t.Cleanup(func() {
		_ = exec.Command("sh", "-c", noAreas).Run()
		for _, name := range []string{disk, file} {
			_ = w.Remove(admin + name)
			_ = w.Remove(generated + name)
			_ = w.Remove(wanting + name)
			_ = w.ResetFailed(tctx, name)
		}
		_ = w.Remove(path.Clean(wanting)) // fails where others are in it
		must(w.DaemonReload(tctx))
	})
	_, err := host.MkdirAll(w, path.Clean(wanting))
	must(err)
	for name, what := range map[string]string{disk: "/dev/disk/by-uuid/" + uuid, file: "/var/life-file"} {
		must(host.WriteFile(w, generated+name, []byte("[Unit]\nBefore=swap.target\n[Swap]\nWhat="+what+"\n"), host.Attributes{Mode: 0o644}))
		must(w.Symlink("../"+name, wanting+name))
	}
	for _, before := range []bool{true, false} {
		must(w.DaemonReload(tctx))
		for _, name := range []string{disk, file} {
			must(w.StartUnit(tctx, name))
			must(w.Symlink("/dev/null", admin+name))
		}
		if before {
			must(w.DaemonReload(tctx))
		}
		stopped(t, w, disk, file)
		if in := shell(t, "swapon --show --noheadings"); in != "" {
			t.Errorf("read before %t: in use: %s", before, in)
		}
		for _, name := range []string{disk, file} {
			must(w.Remove(admin + name))
		}
	}
}

// stopped stops all units at once, while systemd reads its definitions.
func stopped(t *testing.T, w *world, names ...string) {
	t.Helper()
	done := make(chan error)
	go func() { done <- w.DaemonReload(tctx) }()
	for _, name := range names {
		go func() { done <- w.StopUnit(tctx, name) }()
	}
	for range len(names) + 1 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, name := range names {
		if st, err := w.Unit(tctx, name); err != nil || st.ActiveState != "inactive" {
			t.Errorf("%s is %s, %v", name, st.ActiveState, err)
		}
	}
}

func shell(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}
