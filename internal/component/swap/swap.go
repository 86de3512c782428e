// Package swap is a swap file and what uses it at each boot.
package swap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/unitname"
)

// Names and paths.
const (
	// SettingsFile is where berth node swap reads what is wanted.
	SettingsFile = paths.SettingsDir + "/swap.json"
	// Unit makes the file at boot where it has gone: a resource disk may be another
	// one after each.
	Unit = "berth-swap.service"
	name = "swapfile"
	// patience is how long swapoff(8) may take: it reads back what is in use.
	patience = "5min"
	unitDir  = UnitDir + "/"

	// UnitDir is where a machine's own units are, and Mask what a link there leads to
	// where nothing may start the unit.
	UnitDir = "/etc/systemd/system"
	Mask    = "/dev/null"

	// Target is the unit that starts the areas of a machine.
	Target = "swap.target"
)

// Off takes areas out of use, by their units: those stop, and nothing uses them at the
// next boot. The target of all goes with them: it requires those of /etc/fstab, and can't
// be started without. When nobody asks for that any more, what was in use is used again.
func Off(units []string) []desired.Resource {
	if len(units) == 0 {
		return nil
	}
	var out []desired.Resource
	for _, name := range append(slices.Clone(units), Target) {
		mask := &desired.Link{Path: unitDir + name, Target: Mask}
		out = append(out, mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: name, Activation: desired.Stopped})
	}
	return out
}

// Settings are what differs from node to node.
type Settings struct {
	// Bytes are the size of the file.
	Bytes int64
	// ResourceDisk is where the machine's resource disk is mounted, of which all has
	// ResourceDiskBytes; empty where there is none.
	ResourceDisk      string
	ResourceDiskBytes int64
	// Program is berth's own path; empty: packetfilter.Program.
	Program string
}

// Path is where the file is: on the resource disk where that has room, else on the
// disk of the system. The size of the disk counts and not what is free of it, which
// the file itself would change; a tenth is the file system's own.
func (s Settings) Path() string {
	if s.ResourceDisk != "" && s.Bytes <= s.ResourceDiskBytes/10*9 {
		return path.Join(s.ResourceDisk, name)
	}
	return "/" + name
}

// Resources are the file, the unit that uses it, and the one that makes it again.
// systemd's own unit of a swap file comes before any file system but the first, hence
// without the default dependencies.
func Resources(s Settings) ([]desired.Resource, error) {
	file := &desired.Swap{Path: s.Path(), Bytes: s.Bytes}
	settings, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write swap settings: %w", err)
	}
	using := unitname.OfPath(file.Path) + ".swap"
	service := unitfile.Text(
		unitfile.In("Unit", "Description", "Make the swap file "+file.Path+" where it is missing", "RequiresMountsFor", path.Dir(file.Path)),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes",
			"ExecStart", unitfile.Word(cmp.Or(s.Program, packetfilter.Program))+" node swap"))
	use := unitfile.Text(
		unitfile.In("Unit", "Description", "Swap file "+file.Path, "DefaultDependencies", "no", "Requires", Unit, "After", Unit,
			"Before", kubelet.Unit+" umount.target", "Conflicts", "umount.target"),
		unitfile.In("Swap", "What", file.Path, "TimeoutSec", patience),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
	out := []desired.Resource{
		plain(SettingsFile, string(settings)+"\n"), plain(unitDir+Unit, service), plain(unitDir+using, use), file,
	}
	unit := &desired.Unit{Name: using, Enablement: desired.Enabled, Activation: desired.Started}
	for _, r := range out {
		unit.After = append(unit.After, r.ID())
	}
	return append(out, unit), nil
}

func plain(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed}
}

// Read is the file that a SettingsFile asks for.
func Read(text []byte) (*desired.Swap, error) {
	s := &desired.Swap{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", SettingsFile, err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", SettingsFile, err)
	}
	return s, nil
}
