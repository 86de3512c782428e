package provision

import (
	"context"
	"path"
	"strconv"

	"github.com/berth-dev/berth/internal/host"
)

// resourceLink is the first partition of the resource disk, by the rules that Azure's
// images have for udev.
const resourceLink = "/dev/disk/azure/resource-part1"

// sector is the unit of a block device's size in /sys, whatever its own sectors are.
const sector = 512

// resourceDisk is where the disk is mounted that the machine has for as long as it runs,
// and its size in bytes. One that is not mounted just now is where it was when a swap file
// was made on it: the file is not to move from disk to disk with that.
func resourceDisk(ctx context.Context, h host.Host) (target string, bytes int64) {
	to, err := h.Readlink(resourceLink)
	if err != nil {
		return "", 0
	}
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(resourceLink), to)
	}
	mounts, err := h.Mounts(ctx)
	if err != nil {
		return "", 0
	}
	for _, m := range mounts {
		if m.Source == to {
			target = m.Target
			break
		}
	}
	if target == "" {
		target = swapBefore(h)
	}
	sectors, err := strconv.ParseInt(line(h, "/sys/class/block/"+path.Base(to)+"/size"), 10, 64)
	if target == "" || err != nil {
		return "", 0
	}
	return target, sectors * sector
}

// swapBefore is the directory of the swap file that an earlier run wrote down, unless that
// is on the disk of the system.
func swapBefore(h host.FS) string {
	s, err := writtenSwap(h)
	if err != nil || path.Dir(s.Path) == "/" {
		return ""
	}
	return path.Dir(s.Path)
}
