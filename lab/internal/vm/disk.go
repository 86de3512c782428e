package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// overlayName is the file that holds what a machine wrote, and its saved states.
const overlayName = "disk.qcow2"

var errDiskInUse = errors.New("the machine is on: its disk is in use")

// WipeDisk gives the machine a fresh disk: the image as it was built.
func (v *VM) WipeDisk(ctx context.Context) error {
	if v.Running() {
		return errDiskInUse
	}
	clear(v.saved)
	if err := os.RemoveAll(v.path(overlayName)); err != nil {
		return fmt.Errorf("remove disk: %w", err)
	}
	return run(exec.CommandContext(ctx, "qemu-img", "create", "-q", "-f", "qcow2",
		"-b", v.cfg.Image.Disk, "-F", "raw", v.path(overlayName)))
}

// CopyDisk writes what is on the disk of a machine that is off to a sparse
// file: an ext4 file system as the last power off left it. Some 1 GiB, 1–2 s.
func (v *VM) CopyDisk(ctx context.Context, to string) error {
	if v.Running() {
		return errDiskInUse
	}
	return run(exec.CommandContext(ctx, "qemu-img", "convert", "-W", "-O", "raw", v.path(overlayName), to))
}

// AttachDisk puts a blank disk of size bytes into the running machine, as a cloud
// attaches a volume. It goes with the power.
func (v *VM) AttachDisk(ctx context.Context, name string, size int64) error {
	file := v.path(name + ".raw")
	if err := os.RemoveAll(file); err != nil {
		return fmt.Errorf("attach disk: %w", err)
	}
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		return fmt.Errorf("attach disk: %w", err)
	}
	drive := map[string]any{"driver": "raw", "node-name": name, "file": map[string]string{"driver": "file", "filename": file}}
	if err := v.command(ctx, "blockdev-add", drive, nil); err != nil {
		return err
	}
	return v.command(ctx, "device_add", map[string]string{"driver": "virtio-blk-pci", "id": name + "-device", "drive": name}, nil)
}
