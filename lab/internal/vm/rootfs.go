package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const units = "etc/systemd/system/"

// rootfsFiles make a Debian tree boot as a machine of its own. networkd would
// wait for a router advertisement that nobody sends, the other types of ssh
// host key take 15 s to generate under emulation, cloud-init's modules for a boot
// loader and for packages as long, and the guest agent would start only after the
// stage of cloud-init in which provisioning begins.
var rootfsFiles = map[string]string{
	"etc/fstab":      "/dev/vda / ext4 defaults 0 1\n",
	"etc/machine-id": "",
	"etc/cloud/cloud.cfg.d/90-lab-vm.cfg": "datasource_list: [ NoCloud, None ]\n" +
		"ssh_genkeytypes: [ed25519]\nlocale: false\n" +
		"cloud_config_modules: [set-passwords, runcmd]\n" +
		"cloud_final_modules: [scripts-vendor, scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user]\n",
	units + "qemu-guest-agent.service.d/early.conf": "[Unit]\nDefaultDependencies=no\n" +
		"Conflicts=shutdown.target\nBefore=shutdown.target\n" +
		// It reports every command to the journal, and so drowns it.
		"[Service]\nLogLevelMax=notice\n",
	"etc/systemd/network/10-cloud-init-host0.network.d/no-ra.conf": "[Network]\nIPv6AcceptRA=no\n",
}

// rootfsLinks enable networkd and turn off what only costs time here.
var rootfsLinks = map[string]string{
	units + "multi-user.target.wants/systemd-networkd.service":                 "/lib/systemd/system/systemd-networkd.service",
	units + "sockets.target.wants/systemd-networkd.socket":                     "/lib/systemd/system/systemd-networkd.socket",
	units + "dbus-org.freedesktop.network1.service":                            "/lib/systemd/system/systemd-networkd.service",
	units + "network-online.target.wants/systemd-networkd-wait-online.service": "/lib/systemd/system/systemd-networkd-wait-online.service",
	units + "e2scrub_reap.service":                                             "/dev/null",
}

// containerOnly are units that make a container's cgroups writable: a machine
// has its own.
var containerOnly = []string{
	units + "cgroup-rw.service", units + "sysinit.target.wants/cgroup-rw.service",
}

// PrepareRootfs makes a node's root file system fit for BuildImage: a tree made
// for containers is given back its hardware units (udev, sysctl, kernel
// mounts). Running it again changes nothing. The tree must hold a kernel, its
// initrd, udev and the guest agent; what is absent is named in the error.
func PrepareRootfs(dir string) error {
	if err := requireParts(dir); err != nil {
		return err
	}
	if err := unmask(dir); err != nil {
		return err
	}
	for _, name := range containerOnly {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove container unit: %w", err)
		}
	}
	for name, text := range rootfsFiles {
		if err := writeIn(dir, name, func(p string) error { return os.WriteFile(p, []byte(text), 0o644) }); err != nil {
			return err
		}
	}
	for name, target := range rootfsLinks {
		if err := writeIn(dir, name, func(p string) error { return os.Symlink(target, p) }); err != nil {
			return err
		}
	}
	// With this directory the journal survives a power cut.
	return os.MkdirAll(filepath.Join(dir, "var/log/journal"), 0o755)
}

func requireParts(dir string) error {
	var missing []error
	for pattern, pkg := range map[string]string{
		"boot/vmlinuz-*":                        "linux-image-cloud-amd64",
		"boot/initrd.img-*":                     "initramfs-tools",
		"usr/sbin/qemu-ga":                      "qemu-guest-agent",
		"lib/systemd/systemd-udevd":             "udev",
		"lib/systemd/system/cloud-init.service": "cloud-init",
	} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) == 0 {
			missing = append(missing, fmt.Errorf("no %s in the root file system: install %s", pattern, pkg))
		}
	}
	return errors.Join(missing...)
}

// unmask removes the masks of systemd's own units, where nspawn needs them.
func unmask(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, units))
	if err != nil {
		return fmt.Errorf("read units: %w", err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 || !hardware(e.Name()) {
			continue
		}
		path := filepath.Join(dir, units, e.Name())
		if target, err := os.Readlink(path); err != nil || target != "/dev/null" {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("unmask: %w", err)
		}
	}
	return nil
}

func hardware(unit string) bool {
	for _, prefix := range []string{"systemd-", "sys-", "proc-", "dev-", "kmod-", "modprobe@"} {
		if strings.HasPrefix(unit, prefix) && unit != "systemd-resolved.service" {
			return true
		}
	}
	return false
}

// writeIn replaces the file or link at name, never what a link there points to.
func writeIn(dir, name string, write func(path string) error) error {
	path := filepath.Join(dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	if err == nil {
		err = write(path)
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", name, err)
	}
	return nil
}
