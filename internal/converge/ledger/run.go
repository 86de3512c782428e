package ledger

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Run is what a run is about to do, ids and names only: with it an interrupted
// run resumes. Until the run has ended its claims are entries only where the
// machine shows that they came about.
type Run struct {
	ID    string        `json:"id"`
	Owner desired.Owner `json:"owner"`
	// Boot is the boot that Definitions and Revive speak of; zero where there are none.
	Boot
	// Claims are the entries as they will be.
	Claims map[string]Claim `json:"claims,omitempty"`
	// Drops are the ids that leave the ledger, Leaves those that the owner leaves to
	// others.
	Drops  []string `json:"drops,omitempty"`
	Leaves []string `json:"leaves,omitempty"`
	// Regenerated are files that programs of the machine make anew; their durability
	// is owed.
	Regenerated []string `json:"regenerated,omitempty"`
	// Temps are paths whose temporary files may exist.
	Temps []string `json:"temps,omitempty"`
	// Definitions are names of unit definitions, drop-ins and links that change:
	// systemd has to read them again.
	Definitions []string `json:"definitions,omitempty"`
	// Revive are units that ran and that may stop as a consequence of others.
	Revive []string `json:"revive,omitempty"`
}

// Claim is an entry as it will be, and what stood at the name when that was
// decided.
type Claim struct {
	Entry Entry `json:"entry"`
	// Seen is the identity of what stood there: inode and time of change; "" for
	// nothing.
	Seen string `json:"seen,omitempty"`
	// Prepared: another wrote the file; its mark is known when that has ended.
	Prepared bool `json:"prepared,omitempty"`
}

// Seen is the identity of what stands at a path.
func Seen(info *host.Info) string {
	if info == nil {
		return ""
	}
	if info.Mode.IsDir() {
		return fmt.Sprintf("%d:%o:%d:%d", info.Inode, info.Mode, info.UID, info.GID)
	}
	return fmt.Sprintf("%d:%d", info.Inode, info.ChangeTime.UnixNano())
}

// Mark tells two versions of a downloaded file apart without reading it: programs
// are large and plan is to be quick.
func Mark(info *host.Info) string { return fmt.Sprintf("%d:%d", info.Size, info.ModTime.UnixNano()) }

// placed says whether what a claim speaks of came about. A temporary file that is
// still there never got its name. What is neither as it was nor as claimed is
// somebody's edit, which the next run has to keep.
func (c *Claim) placed(h host.FS, name string) (bool, error) {
	if !IsPath(name) {
		return true, nil // what was there before is in the claim, and is true
	}
	p := &c.Entry.Applied
	if p.Type == File || p.Type == Link {
		if tmp, err := Lstat(h, host.TempName(name)); err != nil || tmp != nil {
			return false, err
		}
	}
	info, err := Lstat(h, name)
	if err != nil || Seen(info) == c.Seen {
		return false, err
	}
	if c.Prepared {
		return info != nil && c.Entry.Mark != "" && Mark(info) == c.Entry.Mark, nil
	}
	return c.Entry.asMade(h, name, info)
}

// asMade says whether what stands at a name is what berth made of it, or is about to.
func (e Entry) asMade(h host.FS, name string, info *host.Info) (bool, error) {
	if e.HalfChanged(info) {
		return true, nil
	}
	return e.Applied.matches(h, name, info)
}

// HalfChanged says whether of mode and owner, which change one after the other, one is as
// berth wanted it and one as it was before berth.
func (e Entry) HalfChanged(info *host.Info) bool {
	if !e.InPlace() || info == nil || info.Mode.IsDir() != (e.Was.Type == Directory) {
		return false
	}
	mode := func(s *Standing) bool { return PermBits(info.Mode) == s.Mode }
	owner := func(s *Standing) bool { return info.UID == s.UID && info.GID == s.GID }
	return mode(&e.Applied) && owner(e.Was) || mode(e.Was) && owner(&e.Applied)
}

// matches says whether what stands at a name is this, as far as it is known.
func (s *Standing) matches(h host.FS, name string, info *host.Info) (bool, error) {
	switch s.Type {
	case Gone:
		return info == nil, nil
	case Directory:
		return info != nil && info.Mode.IsDir(), nil
	case Attributes:
		return info != nil && AttributeDifference(info, s.Mode, s.UID, s.GID) == "", nil
	case Link:
		target, err := h.Readlink(name)
		return err == nil && (target == s.Target || s.Target == ""), nil
	}
	if info == nil || !info.IsRegular() {
		return false, nil
	}
	if s.Sum == "" {
		return true, nil
	}
	sum, err := ContentSum(h, name)
	return sum == s.Sum, err
}

// Clear removes the temporary files of a run that did not come to its end. What was set
// aside, and not replaced yet, has its name again first.
func (r *Run) Clear(h host.FS) error {
	for _, p := range append(slices.Clone(r.Temps), endPath) {
		if err := r.giveBack(h, p); err != nil {
			return fmt.Errorf("clear leftover: %w", err)
		}
		for _, name := range []string{host.TempName(p), DisplacedName(p)} {
			info, err := Lstat(h, name)
			if err == nil && info != nil {
				err = RemoveIfThere(h, name)
			}
			if err != nil {
				return fmt.Errorf("clear leftover: %w", err)
			}
		}
	}
	return nil
}

// giveBack gives what was about to be replaced its name again: nothing stands there, and
// what takes its place is not there yet. A file waits still; a directory is made last.
func (r *Run) giveBack(h host.FS, p string) error {
	aside := DisplacedName(p)
	dir := r.Claims[p].Entry.Applied.Type == Directory
	for name, there := range map[string]bool{p: false, aside: true, host.TempName(p): !dir} {
		if info, err := Lstat(h, name); err != nil || (info != nil) != there {
			return err
		}
	}
	if err := h.Rename(aside, p); err != nil {
		return err
	}
	return h.SyncDir(path.Dir(p))
}

// DisplacedName is where what a change displaces waits until all names are in
// place.
func DisplacedName(p string) string { return strings.TrimSuffix(host.TempName(p), ".new") + ".old" }
