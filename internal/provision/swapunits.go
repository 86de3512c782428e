package provision

import (
	"context"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// swapUnits are the units of swap areas that are in use, and those that are masked: they
// would be in use otherwise, so that an area which berth has taken out of use is one still.
// systemd has a unit for each area, whoever began to use it, and more for the other names
// of its device: these show the state of the first, and nothing could start them again.
// Where the first is masked and still in use, systemd has forgotten its device: the others
// are none of that area only by what their names lead to.
func swapUnits(ctx context.Context, h host.Host) []string {
	out := maskedSwap(h)
	areas := map[string]bool{}
	for _, name := range out {
		areas[swapArea(h, name)] = true
	}
	all, err := h.ListUnits(ctx, "*.swap")
	if err != nil {
		all = nil // a machine without systemd has no units
	}
	for _, u := range all {
		if u.Following == "" && (u.ActiveState == "active" || u.ActiveState == "activating") && !areas[swapArea(h, u.Name)] {
			out = append(out, u.Name)
		}
	}
	slices.Sort(out)
	return out
}

// swapArea is the device or file of which a unit has a name: where links lead to, as those
// of /dev/disk do, which are one link each.
func swapArea(h host.Host, unit string) string {
	area, ok := unitname.Path(unit)
	if !ok {
		return unit
	}
	to, err := h.Readlink(area)
	switch {
	case err != nil:
		return area
	case path.IsAbs(to):
		return path.Clean(to)
	}
	return path.Join(path.Dir(area), to)
}

// maskedSwap are the units of swap areas that a link masks.
func maskedSwap(h host.Host) []string {
	var out []string
	names, err := h.ReadDir(swap.UnitDir)
	if err != nil {
		names = nil // there are none
	}
	for _, name := range names {
		if path.Ext(name) != ".swap" {
			continue
		}
		if to, err := h.Readlink(path.Join(swap.UnitDir, name)); err == nil && to == swap.Mask {
			out = append(out, name)
		}
	}
	return out
}
