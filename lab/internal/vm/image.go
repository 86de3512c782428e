package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// Image is what a machine boots from. The disk is never written: each machine
// has its own overlay.
type Image struct {
	Disk   string // raw ext4 file system without a partition table
	Kernel string
	Initrd string
}

// ImageOptions says how to build an Image.
type ImageOptions struct {
	Rootfs    string // directory; a merged overlay mount is fine
	Out       string // directory for disk.img, vmlinuz and initrd.img
	SizeGiB   int    // apparent size; the file is sparse. 0 means 6
	NoJournal bool   // ext4 without a journal: only to measure what the journal costs
}

// BuildImage turns a root file system into an Image without mounting anything.
// The kernel and the initrd are the newest ones in Rootfs/boot.
func BuildImage(ctx context.Context, o ImageOptions) (Image, error) {
	img := Image{
		Disk:   filepath.Join(o.Out, "disk.img"),
		Kernel: filepath.Join(o.Out, "vmlinuz"),
		Initrd: filepath.Join(o.Out, "initrd.img"),
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return Image{}, fmt.Errorf("make image directory: %w", err)
	}
	if err := copyNewest(filepath.Join(o.Rootfs, "boot", "vmlinuz-*"), img.Kernel); err != nil {
		return Image{}, err
	}
	if err := copyNewest(filepath.Join(o.Rootfs, "boot", "initrd.img-*"), img.Initrd); err != nil {
		return Image{}, err
	}
	return img, makeDisk(ctx, o, img.Disk)
}

func makeDisk(ctx context.Context, o ImageOptions, disk string) error {
	temp := disk + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("remove stale disk: %w", err)
	}
	cmd := exec.CommandContext(ctx, "mke2fs", mke2fsArgs(o, temp)...)
	if err := run(cmd); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, disk)
}

func mke2fsArgs(o ImageOptions, disk string) []string {
	features := "has_journal"
	if o.NoJournal {
		features = "^has_journal"
	}
	size := max(o.SizeGiB, 0)
	if size == 0 {
		size = 6
	}
	return []string{"-q", "-t", "ext4", "-O", features, "-L", "root", "-d", o.Rootfs, disk, strconv.Itoa(size) + "G"}
}

func copyNewest(pattern, to string) error {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no file matches %s: the root file system has no kernel package", pattern)
	}
	return copyFile(slices.MaxFunc(found, compareNatural), to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy kernel file: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("copy kernel file: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// compareNatural orders numbers inside names by value, so that 6.1.0-56 is
// newer than 6.1.0-9.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		na, ra := leadingNumber(a)
		nb, rb := leadingNumber(b)
		switch {
		case na >= 0 && nb >= 0 && na != nb:
			return na - nb
		case na >= 0 && nb >= 0:
			a, b = ra, rb
		case a[0] != b[0]:
			return int(a[0]) - int(b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) - len(b)
}

// leadingNumber returns -1 if s does not start with a digit.
func leadingNumber(s string) (int, string) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return -1, s
	}
	return n, s[end:]
}
