package provision

import (
	"context"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/host"
)

// swapUnits are the units of swap areas that are in use, and those that are masked: they
// would be in use otherwise, so that an area which berth has taken out of use is one still.
// systemd has a unit for each area, whoever began to use it, and more for the other names
// of its device: these show the state of the first, and nothing could start them again.
func swapUnits(ctx context.Context, h host.Host) []string {
	var out []string
	all, err := h.ListUnits(ctx, "*.swap")
	if err != nil {
		all = nil // a machine without systemd has no units
	}
	for _, u := range all {
		if u.Following == "" && (u.ActiveState == "active" || u.ActiveState == "activating") {
			out = append(out, u.Name)
		}
	}
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
	slices.Sort(out)
	return slices.Compact(out)
}
