package provision

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestSwapOff: an area that a generator's unit uses is out of use while the machine is a node,
// also in a plan that is made then, and at the next boot; and it is used again afterwards,
// with the target that requires it as that of a line in /etc/fstab does. One that somebody has
// masked before stays so.
func TestSwapOff(t *testing.T) {
	const used, idle, theirs, target = "disk.swap", "other.swap", "dev-sdb1.swap", "swap.target"
	h := memory.New()
	unit := "[Unit]\nDefaultDependencies=no\n[Swap]\nWhat=/disk\n"
	h.Put("/run/systemd/generator/"+used, unit, 0o644)
	h.Put("/run/systemd/generator/"+idle, strings.ReplaceAll(unit, "/disk", "/other"), 0o644)
	page := os.Getpagesize()
	area := make([]byte, 2*page)
	binary.LittleEndian.PutUint32(area[1028:], 1) // the last page
	copy(area[page-10:], "SWAPSPACE2")
	h.Put("/disk", string(area), 0o600)
	h.PutLink("/dev/null", "/etc/systemd/system/"+theirs, 0)
	h.PutDir("/run/berth")
	h.Put("/usr/lib/systemd/system/"+target, "[Unit]\nDescription=Swaps\n", 0o644)
	h.PutLink("../"+used, "/run/systemd/generator/"+target+".requires/"+used, 0)
	if err := errors.Join(h.DaemonReload(t.Context()), h.StartUnit(t.Context(), used), h.StartUnit(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	before := h.Tree("/etc")
	apply := func(rs []desired.Resource) *converge.Plan {
		t.Helper()
		st := &desired.State{Owner: desired.OwnerNode}
		st.Add(rs...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		res, err := converge.New(converge.Options{Host: h, Command: "test", Workers: 1}).Apply(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		return res.Plan
	}
	is := func(active, load string) {
		t.Helper()
		for _, name := range []string{used, target} {
			if st, err := h.Unit(t.Context(), name); err != nil || st.ActiveState != active || st.LoadState != load {
				t.Errorf("%s is %s, %s, want %s, %s; %v", name, st.ActiveState, st.LoadState, active, load, err)
			}
		}
	}
	for _, changes := range []bool{true, false} {
		units := swapUnits(t.Context(), h)
		if !slices.Equal(units, []string{theirs, used}) {
			t.Errorf("units %q", units)
		}
		if p := apply(swap.Off(units)); p.Empty() == changes {
			t.Errorf("planned %v", p.Actions)
		}
		is("inactive", "masked")
	}
	apply(nil)
	is("active", "loaded")
	if diff := cmp.Diff(before, h.Tree("/etc")); diff != "" {
		t.Error(diff)
	}
}

// areas is a machine whose systemd lists these units.
type areas struct {
	host.Host
	units []host.UnitStatus
}

// ListUnits implements host.Systemd.
func (a areas) ListUnits(context.Context, ...string) ([]host.UnitStatus, error) { return a.units, nil }

// TestSwapUnitsMasked: a run that ended between the mask of a disk's unit and its stop leaves
// the disk in use by a unit that follows nothing any more, and has its own name for the disk.
func TestSwapUnitsMasked(t *testing.T) {
	const fstab, node, other = `dev-disk-by\x2duuid-1.swap`, "dev-sda2.swap", "dev-sdb.swap"
	h := areas{memory.New(), []host.UnitStatus{
		{Name: fstab, LoadState: "masked", ActiveState: "active"},
		{Name: node, ActiveState: "active"},
		{Name: other, ActiveState: "active"},
	}}
	for at, to := range map[string]string{"/dev/disk/by-uuid/1": "../../sda2", swap.UnitDir + "/" + fstab: swap.Mask} {
		if _, err := host.MkdirAll(h, path.Dir(at)); err != nil {
			t.Fatal(err)
		}
		if err := h.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{fstab, other}, swapUnits(t.Context(), h)); diff != "" {
		t.Error(diff)
	}
}

// TestSwapUnits: a unit that only shows the state of another one has no definition, and
// could not be started again: the one that it follows stands for the area.
func TestSwapUnits(t *testing.T) {
	const fstab, node, link = `dev-disk-by\x2duuid-1.swap`, "dev-sda2.swap", `dev-disk-by\x2dpath-2.swap`
	for _, tc := range []struct {
		name  string
		units []host.UnitStatus
		want  []string
	}{
		{"none", nil, nil},
		{"of fstab", []host.UnitStatus{
			{Name: link, ActiveState: "active", Following: fstab},
			{Name: fstab, ActiveState: "active"},
			{Name: node, ActiveState: "active", Following: fstab},
		}, []string{fstab}},
		{"by hand", []host.UnitStatus{
			{Name: link, ActiveState: "active", Following: node},
			{Name: node, ActiveState: "active"},
		}, []string{node}},
		{"not in use", []host.UnitStatus{{Name: fstab, ActiveState: "inactive"}, {Name: "a.swap", ActiveState: "activating"}}, []string{"a.swap"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, swapUnits(t.Context(), areas{memory.New(), tc.units})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
