package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBuildImage(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	write(t, root, "boot/vmlinuz-6.1.0-9-cloud-amd64", "old kernel")
	write(t, root, "boot/vmlinuz-6.1.0-56-cloud-amd64", "new kernel")
	write(t, root, "boot/initrd.img-6.1.0-56-cloud-amd64", "initrd")
	for _, test := range []struct{ noJournal, want bool }{{false, true}, {true, false}} {
		img, err := BuildImage(t.Context(), ImageOptions{Rootfs: root, Out: out, SizeGiB: 1, NoJournal: test.noJournal})
		if err != nil {
			t.Fatal(err)
		}
		if read(t, img.Kernel) != "new kernel" || read(t, img.Initrd) != "initrd" {
			t.Error("wrong kernel")
		}
		features, err := exec.Command("dumpe2fs", "-h", img.Disk).Output()
		if err != nil || strings.Contains(string(features), "has_journal") != test.want {
			t.Errorf("no journal wanted: %v, %v:\n%s", test.noJournal, err, features)
		}
		content, err := exec.Command("debugfs", "-R", "cat /boot/vmlinuz-6.1.0-9-cloud-amd64", img.Disk).Output()
		if err != nil || string(content) != "old kernel" {
			t.Errorf("the disk holds %q, %v", content, err)
		}
	}
}

func TestBuildImageWithoutKernel(t *testing.T) {
	if _, err := BuildImage(t.Context(), ImageOptions{Rootfs: t.TempDir(), Out: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "no kernel package") {
		t.Errorf("error %v", err)
	}
}

func TestCompareNatural(t *testing.T) {
	ordered := []string{"", "a", "a-6.1.0-9-x", "a-6.1.0-9-x1", "a-6.1.0-56-x", "a-6.10", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareNatural(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

func TestPrepareRootfs(t *testing.T) {
	root := t.TempDir()
	if err := PrepareRootfs(root); err == nil || !strings.Contains(err.Error(), "install qemu-guest-agent") {
		t.Errorf("an empty tree: %v", err)
	}
	for _, name := range []string{
		"boot/vmlinuz-1", "boot/initrd.img-1", "usr/sbin/qemu-ga",
		"lib/systemd/systemd-udevd", "lib/systemd/system/cloud-init.service", units + "cgroup-rw.service",
	} {
		write(t, root, name, "")
	}
	write(t, root, "etc/machine-id", "0123456789abcdef\n")
	for _, masked := range []string{"systemd-udevd.service", "sys-kernel-debug.mount", "systemd-resolved.service", "kubelet.service"} {
		ok(t, os.Symlink("/dev/null", filepath.Join(root, units, masked)))
	}
	ok(t, os.Symlink("/lib/systemd/system/systemd-other.service", filepath.Join(root, units, "systemd-alias.service")))

	for range 2 {
		ok(t, PrepareRootfs(root))
	}
	want := map[string]bool{ // name → present
		"systemd-udevd.service": false, "sys-kernel-debug.mount": false, "cgroup-rw.service": false,
		"systemd-resolved.service": true, "kubelet.service": true, "systemd-alias.service": true,
		"qemu-guest-agent.service.d/early.conf": true,
	}
	for name, present := range want {
		if _, err := os.Lstat(filepath.Join(root, units, name)); (err == nil) != present {
			t.Errorf("%s: %v", name, err)
		}
	}
	if id := read(t, filepath.Join(root, "etc/machine-id")); id != "" {
		t.Errorf("machine-id %q", id)
	}
}
