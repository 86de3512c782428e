package datadisk

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

const (
	sysBlock = "/sys/block"
	// sector is the unit of a size in sysfs, in bytes, whatever the disk's own is.
	sector = 512
	// edge is how much is read at either end of a disk to tell whether it is empty, in
	// bytes: there most formats have what tells them.
	edge = 16 << 20
	// samples is how many extents between the ends are read, and sample how much of
	// each: a disk is too large to be read as a whole while a machine waits.
	samples = 64
	sample  = 1 << 20
)

// virtual are the beginnings of names of devices that are no disks.
var virtual = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"}

// UsedError is a disk of the right size on which there is something.
type UsedError struct {
	Device string
	// Has says what.
	Has string
}

// Error names the disk and what is on it.
func (e *UsedError) Error() string {
	return fmt.Sprintf("%s has the size of the disk for %s, but it is not empty: %s", e.Device, Dir, e.Has)
}

// Hint says what to do.
func (e *UsedError) Hint() string {
	return "If nobody needs what is on it, clear it (wipefs --all " + e.Device + ", then blkdiscard or dd from /dev/zero) and start again; else give the machine an empty disk of this size."
}

// ManyError is more than one empty disk of the right size.
type ManyError struct{ Devices []string }

// Error names them.
func (e *ManyError) Error() string {
	return fmt.Sprintf("several disks could be that for %s, and nothing tells them apart: %s", Dir, strings.Join(e.Devices, ", "))
}

// Hint says what to do.
func (e *ManyError) Hint() string {
	return "Give the machine one empty disk of the size of kubeletDataVolumeSize; a byte more or less makes another one different."
}

// AbsentError is a disk that did not come.
type AbsentError struct {
	Size int64
	// Sizes are those of the disks that there are, in bytes by device.
	Sizes map[string]int64
	Err   error
}

// Error names the size and the disks.
func (e *AbsentError) Error() string {
	have := []string{}
	for device, size := range e.Sizes {
		have = append(have, fmt.Sprintf("%s %d", device, size))
	}
	slices.Sort(have)
	return fmt.Sprintf("no disk of %d bytes for %s (there are: %s): %v", e.Size, Dir, strings.Join(have, ", "), e.Err)
}

// Unwrap is why nobody waits any longer.
func (e *AbsentError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *AbsentError) Hint() string {
	return "The disk counts only with exactly the size of kubeletDataVolumeSize, in bytes: attach it, or correct the size."
}

// await waits for the one disk of a size. What is on it is looked at when it is
// there.
func await(ctx context.Context, h host.Host, size int64) (string, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := h.Watch(watching, host.Watched{Names: []string{"/dev"}})
	if err != nil {
		return "", fmt.Errorf("wait for the disk of %s: %w", Dir, err)
	}
	for {
		sizes, err := disks(h)
		if err != nil {
			return "", err
		}
		if device, err := choose(ctx, h, sizes, size); device != "" || err != nil {
			return device, err
		}
		select {
		case <-events:
		case <-ctx.Done():
			return "", &AbsentError{Size: size, Sizes: sizes, Err: context.Cause(ctx)}
		}
	}
}

// disks are the whole disks of the machine with their sizes.
func disks(h host.Host) (map[string]int64, error) {
	names, err := h.ReadDir(sysBlock)
	if err != nil {
		return nil, fmt.Errorf("list disks: %w", err)
	}
	out := map[string]int64{}
	for _, name := range names {
		if slices.ContainsFunc(virtual, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		text, ok, err := ledger.ReadFile(h, path.Join(sysBlock, name, "size"))
		if err != nil || !ok {
			continue // it went meanwhile
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			out["/dev/"+name] = n * sector
		}
	}
	return out, nil
}

// choose is the one disk of a size that is empty, or the one that berth had begun
// with; "" where there is none of the size.
func choose(ctx context.Context, h host.Host, sizes map[string]int64, size int64) (string, error) {
	was, err := readBegun(h)
	if err != nil {
		return "", err
	}
	var empty []string
	var used *UsedError
	for device, has := range sizes {
		if has != size {
			continue
		}
		what, err := contents(ctx, h, device, size, was)
		switch {
		case err != nil:
			return "", err
		case what != "":
			used = &UsedError{Device: device, Has: what}
		default:
			empty = append(empty, device)
		}
	}
	slices.Sort(empty)
	switch {
	case len(empty) > 1:
		return "", &ManyError{Devices: empty}
	case len(empty) == 1:
		return empty[0], nil
	case used != nil:
		return "", used
	}
	return "", nil
}

// begun is what berth had begun with: the file system that it was making, which it is known by
// wherever it is, and the disk's name, which holds as long as here says so.
type begun struct {
	device, id string
	here       bool
}

func readBegun(h host.FS) (was begun, err error) {
	text, _, err := ledger.ReadFile(h, notePath)
	if f := strings.Fields(string(text)); len(f) >= 2 {
		was = begun{device: f[0], id: f[1], here: len(f) > 2 && strings.Join(f[2:], " ") == attachment(h, f[0])}
	}
	return was, err
}

// attachment tells the disk that has a name from any other that has had it or will have it: by the
// boot, and by a number that the kernel gives each disk in it (Linux 5.15; before that a disk
// that takes the place of another in one boot can't be told from it).
func attachment(h host.FS, device string) string {
	seq, _ := h.ReadFile(path.Join(sysBlock, path.Base(device), "diskseq")) // an older kernel has none
	return strings.TrimSpace(report.BootID(h) + " " + string(seq))
}

// contents says what is on a disk; "" for nothing. On one that berth had begun with
// there may be its own file system, which has no label yet.
func contents(ctx context.Context, h host.Host, device string, size int64, was begun) (string, error) {
	link, err := h.Readlink(path.Join(sysBlock, path.Base(device)))
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", device, err)
	}
	parts, err := h.ReadDir(path.Join(sysBlock, link))
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", device, err)
	}
	for _, p := range parts {
		if strings.HasPrefix(p, path.Base(device)) {
			return "the partition " + p, nil
		}
	}
	out, err := h.Run(ctx, host.Command{Path: "blkid", Args: []string{"--probe", "--output", "export", device}})
	switch {
	case err == nil:
		return signature(string(out.Stdout), was), nil
	case !isExit(err, nothingFound):
		return "", fmt.Errorf("look at %s: %w", device, err)
	case was.here && was.device == device: // half a file system
		return "", nil
	}
	return data(ctx, h, device, size)
}

// data says where a disk has other bytes than zeros; "" for nowhere that is looked at.
func data(ctx context.Context, h host.Host, device string, size int64) (string, error) {
	for _, p := range extents(size) {
		_, err := h.Run(ctx, host.Command{Path: "cmp", Args: []string{
			"--silent", fmt.Sprintf("--ignore-initial=%d:0", p.from), fmt.Sprintf("--bytes=%d", p.bytes), device, "/dev/zero"}})
		if isExit(err, differs) {
			return fmt.Sprintf("data of a kind that blkid does not know, in the %d bytes from %d on", p.bytes, p.from), nil
		}
		if err != nil {
			return "", fmt.Errorf("look at %s: %w", device, err)
		}
	}
	return "", nil
}

// extent is a part of a disk, in bytes.
type extent struct{ from, bytes int64 }

// extents are what is looked at of a disk: its ends, and samples evenly spread between
// them. Of a disk that has little more than these it is all.
func extents(size int64) []extent {
	between := size - 2*edge
	if between <= 2*samples*sample {
		return []extent{{0, size}}
	}
	all := []extent{{0, edge}, {size - edge, edge}}
	for n := range int64(samples) {
		// In the middle of its share, at a whole sample: what is aligned is hit at its head.
		from := edge + (2*n+1)*between/(2*samples)
		all = append(all, extent{from - from%sample, sample})
	}
	return all
}

// differs is cmp's exit code for that; it has the same for a disk that is shorter.
const differs = 1

// signature names what blkid found.
func signature(found string, was begun) string {
	values := map[string]string{}
	for line := range strings.Lines(found) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[key] = value
	}
	switch {
	case was.id != "" && values["UUID"] == was.id && values["TYPE"] == fsType && values["LABEL"] == "":
		return ""
	case values["TYPE"] != "":
		return "a file system or member of type " + values["TYPE"]
	case values["PTTYPE"] != "":
		return "a partition table of type " + values["PTTYPE"]
	}
	return "what blkid calls " + strings.Join(strings.Fields(found), " ")
}
