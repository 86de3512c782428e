// Package hostdeps installs the Debian packages that the lab and the tests use.
package hostdeps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/berth-dev/berth/lab/internal/progress"
)

// tool is a file that proves that a package is installed.
type tool struct{ path, pkg string }

// tests are for the tests that start no machine: those of berth, also under the
// race detector, and those of the lab.
var tests = []tool{
	{"/usr/bin/systemd-analyze", "systemd"},
	{"/usr/bin/systemctl", "systemd"},
	{"/usr/bin/openssl", "openssl"},
	{"/sbin/mke2fs", "e2fsprogs"},
	{"/sbin/dumpe2fs", "e2fsprogs"},
	{"/sbin/debugfs", "e2fsprogs"},
	{"/sbin/blkid", "util-linux"},
	{"/sbin/ip", "iproute2"},
	{"/usr/sbin/iptables-nft", "iptables"},
	{"/usr/sbin/iptables-nft-restore", "iptables"},
	{"/usr/sbin/ip6tables-nft", "iptables"},
	{"/usr/sbin/iptables-legacy", "iptables"},
	{"/usr/bin/gcc", "gcc"},
	{"/usr/include/stdio.h", "libc6-dev"},
}

var nodes = []tool{
	{"/usr/bin/systemd-nspawn", "systemd-container"},
	{"/usr/bin/mmdebstrap", "mmdebstrap"},
	{"/usr/include/seccomp.h", "libseccomp-dev"},
	{"/usr/bin/pkg-config", "pkg-config"},
	{"/usr/bin/gcc", "gcc"},
	{"/usr/include/stdio.h", "libc6-dev"},
	{"/sbin/ip", "iproute2"},
	{"/usr/sbin/iptables", "iptables"},
	{"/usr/bin/nsenter", "util-linux"},
}

var vms = []tool{
	{"/usr/bin/qemu-system-x86_64", "qemu-system-x86"},
	{"/usr/bin/qemu-img", "qemu-utils"},
	{"/usr/share/seabios/bios.bin", "seabios"},
	{"/sbin/mke2fs", "e2fsprogs"},
	{"/sbin/e2fsck", "e2fsprogs"},
}

var ignition = []tool{{"/usr/lib/dracut/modules.d/30ignition/ignition", "ignition"}}

var sites = []tool{{"/usr/bin/openssl", "openssl"}}

var bench = []tool{{"/usr/bin/curl", "curl"}, {"/usr/bin/git", "git"}}

// Tests installs what the tests need that start no machine.
func Tests(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, tests) }

// Nodes installs what nspawn nodes and the builds need.
func Nodes(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, nodes) }

// VMs installs what emulated machines need.
func VMs(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, vms) }

// Ignition installs the program that configures machines from their initramfs.
func Ignition(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, ignition) }

// IgnitionPath is where its package puts it.
func IgnitionPath() string { return ignition[0].path }

// Sites installs what makes signed bundles.
func Sites(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, sites) }

// Bench installs what the bench compares with.
func Bench(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, bench) }

// All installs whatever a test, the lab or the bench calls.
func All(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, all()) }

func all() []tool { return slices.Concat(tests, nodes, vms, ignition, sites, bench) }

func ensure(ctx context.Context, log *progress.Log, tools []tool) error {
	missing := absent(tools)
	if len(missing) == 0 {
		return nil
	}
	packages := strings.Join(missing, " ")
	if os.Geteuid() != 0 {
		return fmt.Errorf("packages of Debian are missing: %s; install them, or run make setup as root", packages)
	}
	err := log.Step("install Debian packages on this machine: "+packages, func() error {
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
	})
	if err != nil {
		return err
	}
	if left := absent(tools); len(left) > 0 {
		return fmt.Errorf("install %s: done, but files of %s are still missing", packages, strings.Join(left, " "))
	}
	return nil
}

// absent names the packages, each once, of which a file is not there.
func absent(tools []tool) []string {
	var missing []string
	for _, t := range tools {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) && !slices.Contains(missing, t.pkg) {
			missing = append(missing, t.pkg)
		}
	}
	return missing
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out.String())
	}
	return nil
}
