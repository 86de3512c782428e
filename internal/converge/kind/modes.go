package kind

import (
	"io/fs"
	"strings"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// modeless are file systems on which chmod(2) says that it is done and does nothing: mode
// and owner are those of the mount (Linux, fs/fat/file.c).
var modeless = map[string]bool{"vfat": true, "msdos": true, "exfat": true}

// AttributeDifference is ledger.AttributeDifference of what can be changed: where the file
// system keeps neither mode nor owner, it counts alone that others may do more than they
// should.
func (m *Machine) AttributeDifference(path string, info *host.Info, a host.Attributes) string {
	reason := ledger.AttributeDifference(info, a.Mode, a.UID, a.GID)
	if reason == "" || m.Modeless(path) && !Exposed(info, a) {
		return ""
	}
	return reason
}

// Exposed says whether what stands at a path is another's, or others may read or write it
// who should not.
func Exposed(info *host.Info, a host.Attributes) bool {
	const others fs.FileMode = 0o066
	return info.UID != a.UID || info.Mode.Perm()&^a.Mode.Perm()&others != 0
}

// Modeless says whether file systems of a type keep no modes.
func Modeless(fsType string) bool { return modeless[fsType] }

// Modeless says whether the file system of a path keeps no modes.
func (m *Machine) Modeless(path string) bool {
	if m.mounts == nil {
		return false
	}
	mounts, err := m.mounts()
	if err != nil {
		return false // under another root nobody says what is mounted
	}
	at, found := "", false
	for _, on := range mounts {
		below := on.Target == "/" || path == on.Target || strings.HasPrefix(path, on.Target+"/")
		if below && len(on.Target) >= len(at) {
			at, found = on.Target, Modeless(on.Type)
		}
	}
	return found
}
