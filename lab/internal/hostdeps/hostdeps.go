// Package hostdeps installs the Debian packages that the lab itself uses.
package hostdeps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/berth-dev/berth/lab/internal/progress"
)

// tool is a file that proves that a package is installed.
type tool struct{ path, pkg string }

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
}

var ignition = []tool{{"/usr/lib/dracut/modules.d/30ignition/ignition", "ignition"}}

// Nodes installs what nspawn nodes and the builds need.
func Nodes(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, nodes) }

// VMs installs what emulated machines need.
func VMs(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, vms) }

// Ignition installs the program that configures machines from their initramfs.
func Ignition(ctx context.Context, log *progress.Log) error { return ensure(ctx, log, ignition) }

// IgnitionPath is where its package puts it.
func IgnitionPath() string { return ignition[0].path }

// Ensure installs packages given as pairs of a file that proves the package
// and the package's name.
func Ensure(ctx context.Context, log *progress.Log, fileAndPackage ...[2]string) error {
	var tools []tool
	for _, p := range fileAndPackage {
		tools = append(tools, tool{p[0], p[1]})
	}
	return ensure(ctx, log, tools)
}

func ensure(ctx context.Context, log *progress.Log, tools []tool) error {
	missing := absent(tools)
	if len(missing) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("install %s: the lab must run as root", strings.Join(missing, " "))
	}
	return log.Step("install Debian packages on this machine: "+strings.Join(missing, " "), func() error {
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
	})
}

func absent(tools []tool) []string {
	var missing []string
	for _, t := range tools {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
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
