// Package hugepages says for which memory the kernel uses transparent huge pages
// (Documentation/admin-guide/mm/transhuge.rst).
package hugepages

import "github.com/berth-dev/berth/internal/desired"

// Names and paths.
const (
	dir = "/sys/kernel/mm/transparent_hugepage/"
	// Enabled is for which memory, Defrag how much the kernel does for it.
	Enabled = dir + "enabled"
	Defrag  = dir + "defrag"
	// BootFile sets both at boot (tmpfiles.d(5), type w).
	BootFile = "/etc/tmpfiles.d/berth-transparent-hugepage.conf"
)

// Settings are words of the kernel; an empty one leaves its attribute alone.
type Settings struct {
	Enabled, Defrag string
}

// Resources are the values now and the file that sets them at boot; nothing where
// nothing is set.
func Resources(s Settings) []desired.Resource {
	var out []desired.Resource
	text := "# Written by berth.\n"
	for _, a := range []struct{ path, value string }{{Enabled, s.Enabled}, {Defrag, s.Defrag}} {
		if a.value == "" {
			continue
		}
		out = append(out, &desired.Sysfs{Path: a.path, Value: a.value})
		text += "w " + a.path + " - - - - " + a.value + "\n"
	}
	if out == nil {
		return nil
	}
	return append(out, &desired.File{Path: BootFile, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed})
}
