// Package image builds the file trees that nodes boot from: one Debian base
// and thin layers over it, used as overlay lowers.
package image

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/lab/internal/cache"
)

// suite is the Debian release of the nodes.
const suite = "bookworm"

// basePackages is what a node image carries besides Debian's minimal set.
var basePackages = []string{
	"systemd", "systemd-sysv", "dbus", "udev", "cloud-init", "openssh-server",
	"iproute2", "iptables", "nftables", "conntrack", "ethtool", "kmod", "iputils-ping",
	"procps", "mount", "netbase", "ca-certificates", "curl", "libseccomp2", "e2fsprogs",
}

// kernelPackages make the same tree bootable as a machine of its own.
var kernelPackages = []string{"linux-image-cloud-amd64", "initramfs-tools", "zstd", "qemu-guest-agent"}

// Base returns the Debian tree that all nspawn nodes share.
func Base(ctx context.Context, c *cache.Cache) (string, error) {
	return debootstrap(ctx, c, "base", basePackages)
}

// KernelBase returns the same tree with a kernel and an initramfs in /boot.
func KernelBase(ctx context.Context, c *cache.Cache) (string, error) {
	return debootstrap(ctx, c, "kernel-base", append(append([]string{}, basePackages...), kernelPackages...))
}

func debootstrap(ctx context.Context, c *cache.Cache, kind string, packages []string) (string, error) {
	args := []string{"--variant=minbase", "--dpkgopt=force-unsafe-io", "--quiet",
		"--include=" + strings.Join(packages, ","), suite}
	key := cache.Key([]byte(strings.Join(args, " ")), []byte("no timers"))
	dir, err := c.Entry(ctx, kind, key, func(ctx context.Context, dir string) error {
		c.Log.Printf("install Debian %s with %s into %s", suite, strings.Join(packages, " "), filepath.Dir(dir))
		return c.Log.Step("install Debian "+suite+" ("+kind+")", func() error { return fillBase(ctx, args, filepath.Join(dir, "root")) })
	})
	return filepath.Join(dir, "root"), err
}

func fillBase(ctx context.Context, args []string, root string) error {
	if err := mmdebstrap(ctx, append(args, root)); err != nil {
		return err
	}
	return removeTimers(root)
}

// removeTimers removes all that the distribution starts by the clock, and what
// enables it: what a timer writes at midnight looks like a change that a test
// made. A mask would not do: the unit stays known to systemd.
func removeTimers(root string) error {
	for _, pattern := range []string{"lib/systemd/system/*.timer", "*/systemd/system/timers.target.wants/*.timer"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("remove timers: %s: %w", pattern, cmp.Or(err, fs.ErrNotExist))
		}
		for _, f := range found {
			if err := os.Remove(f); err != nil {
				return fmt.Errorf("remove timers: %w", err)
			}
		}
	}
	return nil
}

func mmdebstrap(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out.String())
	}
	return nil
}
