// Package ledger is what berth remembers on a machine: what it put where for
// whom, what was there before, and what a run still owes. It holds no decision:
// what to do follows from the machine, and a lost ledger costs work, never
// correctness.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Where berth keeps its own things.
const (
	OriginalsDir = paths.StateDir + "/originals"
	StampDir     = paths.RunDir + "/units"
	LockPath     = paths.RunDir + "/lock"

	Path    = paths.StateDir + "/ledger.json"
	endPath = paths.StateDir + "/ended"
	version = 2
)

// Ledger is what berth has put on this machine, by id, as it is when the last
// run's end, or the machine's state where it was cut off, is taken into account.
type Ledger struct {
	Entries map[string]Entry
	// Found is what berth found in directories that others fill, by path; one that was
	// not there is left out. What was mounted is under MountsFound, the packet filter under
	// FilterFound, kernel parameters under ValuesFound. nil: nobody knows.
	Found map[string]Found
	// Owed is the run that did not come to its end; nil where the last one did.
	Owed *Run
	// halfway are downloads of Owed that did not get their names.
	halfway map[string]bool
	// stored says that there is a file: with originals and without it, the ledger is
	// lost.
	stored bool
	// fresh: berth has never been here, as far as can be told.
	fresh bool
	kept  originals
	// reader spares its process the reading of what this ledger writes; nil: nobody's.
	reader *Reader
}

// stored is the file.
type stored struct {
	Version int              `json:"version"`
	Entries map[string]Entry `json:"entries"`
	Found   map[string]Found `json:"found"`
	// Run is the last run that changed anything: its claims are entries when it has
	// ended.
	Run *Run `json:"run,omitempty"`
}

// Load reads the ledger. A lost or torn one is rebuilt from the index of the
// originals: what they name was berth's; nothing else is claimed. One that a
// newer berth wrote is not lost. A file that has not changed since the last call is
// not read again.
func (r *Reader) Load(h host.Host) (*Ledger, error) {
	l, err := r.load(h)
	for tries := 0; err == nil && l.Owed != nil && tries < rereads; tries++ {
		now, _, unread := r.read(h)
		if unread != nil || now.Run == nil || now.Run.ID == l.Owed.ID {
			break
		}
		l, err = r.load(h)
	}
	return l, err
}

// rereads is how often a reader without the lock begins anew, where it has read the end of a
// later run than the ledger that it had read before.
const rereads = 10

func (r *Reader) load(h host.Host) (*Ledger, error) {
	d, whole, err := r.read(h)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read ledger: %w", err)
	case d.Version > version:
		return nil, &VersionError{Version: d.Version}
	case !whole || d.Version != version:
		return rebuild(h)
	}
	l := &Ledger{Entries: maps.Clone(d.Entries), Found: d.Found, stored: true, reader: r}
	if d.Run == nil {
		return l, nil
	}
	end, _, err := ReadFile(h, endPath)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return l, l.take(h, d.Run, string(end))
}

// take enters what the last run came to.
func (l *Ledger) take(h host.FS, r *Run, end string) error {
	if seen, done := ended(r, end); done {
		l.enter(r)
		l.see(seen)
		return nil
	}
	if strings.TrimSpace(end) == r.ID+" aborted" {
		return nil
	}
	l.Owed, l.halfway = r, map[string]bool{}
	for name, c := range r.Claims {
		placed, err := c.placed(h, name)
		if err != nil {
			return fmt.Errorf("look for what an interrupted run did: %w", err)
		}
		if former, ours := l.Entries[name]; placed && ours {
			l.Entries[name] = c.Entry.after(former)
		} else if placed {
			l.Entries[name] = c.Entry
		}
		l.halfway[name] = c.Prepared && !placed
	}
	return l.drop(h, r.Drops)
}

// drop forgets what an interrupted run took back, or made a part of berth's come into: it may
// have put away the original, and what stands there is not what berth had put there.
func (l *Ledger) drop(h host.FS, names []string) error {
	for _, name := range names {
		e, ours := l.Entries[name]
		if !ours || !IsPath(name) {
			continue
		}
		info, err := Lstat(h, name)
		if err != nil {
			return fmt.Errorf("look for what an interrupted run took back: %w", err)
		}
		gone, err := e.ended(h, name, info)
		if err != nil {
			return fmt.Errorf("look for what an interrupted run took back: %w", err)
		}
		if gone {
			delete(l.Entries, name)
		}
	}
	return nil
}

// ended says whether something else stands at a name than what berth had put there. What waits
// to be replaced gets its name again.
func (e Entry) ended(h host.FS, name string, info *host.Info) (bool, error) {
	if aside, err := Lstat(h, DisplacedName(name)); err != nil || aside != nil {
		return false, err
	}
	if undone, err := e.Undone(h, name, info); err != nil || undone || info == nil {
		return undone, err
	}
	asMade, err := e.asMade(h, name, info)
	return !asMade, err
}

// ended reads the note of a run's end: whether it is this run's, and what downloads were
// when they had their names.
func ended(r *Run, note string) (seen map[string]string, done bool) {
	rest, done := strings.CutPrefix(strings.TrimSpace(note), r.ID+" done")
	if !done || rest == "" {
		return nil, done
	}
	return seen, json.Unmarshal([]byte(rest), &seen) == nil
}

// see enters what downloads were when their run had ended.
func (l *Ledger) see(seen map[string]string) {
	for name, id := range seen {
		if e, ok := l.Entries[name]; ok && e.Mark != "" {
			e.Seen = id
			l.Entries[name] = e
		}
	}
}

func (l *Ledger) enter(r *Run) {
	for name, c := range r.Claims {
		l.Entries[name] = c.Entry
	}
	for _, name := range r.Drops {
		delete(l.Entries, name)
	}
	for _, name := range r.Leaves {
		e := l.Entries[name].Leave(r.Owner)
		l.Entries[name] = e
		if len(e.Owners) == 0 {
			delete(l.Entries, name) // it was adopted, or is somebody else's now
		}
	}
}

// Ours says whether an id is in the ledger at all.
func (l *Ledger) Ours(id string) bool {
	_, ok := l.Entries[id]
	return ok
}

// Halfway says whether the run that was cut off was about to give a download this
// name: others of the same download may have theirs.
func (l *Ledger) Halfway(path string) bool { return l.halfway[path] }

// Made says whether berth put the path there.
func (l *Ledger) Made(path string) bool {
	e, ok := l.Entries[path]
	return ok && !e.InPlace() && !e.Adopted
}

// Begin makes durable what a run is about to do, before it writes anything else.
func (l *Ledger) Begin(h host.Host, r *Run) error {
	for _, dir := range []string{paths.StateDir, OriginalsDir, StampDir} {
		if err := host.PrivateDir(h, dir); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	return l.save(h, r)
}

func (l *Ledger) save(h host.Host, r *Run) error {
	if l.fresh && !l.stored {
		l.Found = find(h)
	}
	d := stored{Version: version, Entries: l.Entries, Found: l.Found, Run: r}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("print ledger: %w", err)
	}
	data = append(data, '\n')
	if err := host.WriteFile(h, Path, data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	l.reader.wrote(data, d)
	if l.stored {
		return nil
	}
	l.stored = true
	// Who made the directory may have been killed before its name was durable.
	return h.SyncDir(path.Dir(paths.StateDir))
}

// Exist makes the file, if there is none: before the first original is kept, which
// would look like the rest of a ledger that was lost.
func (l *Ledger) Exist(h host.Host) error {
	if l.stored {
		return nil
	}
	return l.save(h, nil)
}

// Enter makes a run's claims entries.
func (l *Ledger) Enter(r *Run) { l.enter(r) }

// Done notes that a run has come to its end. Where it only claims, the note is not
// synced: a power cut that takes it away makes the next run look at each claim, no
// more. What left the ledger the machine does not show. seen is what downloads are now.
func (l *Ledger) Done(h host.FS, r *Run, seen map[string]string) error {
	text := r.ID + " done\n"
	if len(seen) > 0 {
		list, err := json.Marshal(seen)
		if err != nil {
			return fmt.Errorf("note the end: %w", err)
		}
		text = r.ID + " done " + string(list) + "\n"
	}
	if len(r.Drops)+len(r.Leaves) == 0 {
		return end(h, text)
	}
	if err := host.WriteFile(h, endPath, []byte(text), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	return nil
}

// Aborted ends a run that changed no name.
func (l *Ledger) Aborted(h host.FS, r *Run) error { return end(h, r.ID+" aborted\n") }

func end(h host.FS, text string) error {
	tmp := host.TempName(endPath)
	if err := RemoveIfThere(h, tmp); err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	f, err := h.Create(tmp)
	if err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	_, err = f.Write([]byte(text))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("note the end: %w", err)
	}
	return h.Rename(tmp, endPath)
}

// VersionError is a ledger that a newer berth wrote. It says what is berth's on
// this machine, so nothing is done without it.
type VersionError struct{ Version int }

// Error names the file and its version.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has version %d, and this berth knows version %d", Path, e.Version, version)
}

// Hint says which berth to use.
func (e *VersionError) Hint() string {
	return "A newer berth has changed this machine: use that version or a later one."
}

// IsPath says whether an id is a name of the tree.
func IsPath(id string) bool { return path.IsAbs(id) }
