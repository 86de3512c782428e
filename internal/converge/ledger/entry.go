package ledger

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Entry is what berth remembers of one resource id: a path, or "unit:", "sysctl:",
// "module:", "credential:", "trust:" and a name.
type Entry struct {
	// Owners want it; the last to go takes it along. The value is what an owner asked
	// for where Applied does not tell: the version of a download, the names in a
	// certificate, a unit's state.
	Owners map[desired.Owner]string `json:"owners,omitempty"`
	// Applied is what berth put there.
	Applied Standing `json:"put"`
	// Earlier are the live values that berth had set before runs that were cut off: which of
	// them and Applied is in force nobody knows.
	Earlier []string `json:"earlier,omitempty"`
	// Was is what stood there before; nil for nothing. A file's content is stored
	// under its sum.
	Was *Standing `json:"was,omitempty"`
	// Mark is the fingerprint of a download.
	Mark string `json:"mark,omitempty"`
	// Seen is the identity of a download when its run had ended; "" where nobody looked.
	Seen string `json:"seen,omitempty"`
	// Held is what a program was found to hold when a run had ended.
	Held *Held `json:"held,omitempty"`
	// Seed content is its owner's once it is there.
	Seed bool `json:"seed,omitempty"`
	// Parent is a directory that was made on the way to another name, so that nobody
	// asked for its mode.
	Parent bool `json:"parent,omitempty"`
	// Adopted: it was as wanted when berth came, or when the ledger was lost. Whose
	// it is can't be said, so it is never deleted.
	Adopted bool `json:"adopted,omitempty"`
}

// Held is the content of a file that is too large to be read in each plan.
type Held struct {
	// Sum is its sha256.
	Sum string `json:"sum"`
	// Seen is the file's identity when it was read.
	Seen string `json:"seen"`
}

// Altered says whether a file is another than the download that it was, as far as can be
// told without reading it.
func (e Entry) Altered(info *host.Info) bool {
	return e.Mark != "" && (Mark(info) != e.Mark || e.Seen != "" && Seen(info) != e.Seen)
}

// Set says whether a live value is one that berth has set.
func (e Entry) Set(value string) bool { return slices.Contains(e.Values(), value) }

// Values are the live values that berth has set of which any may be in force.
func (e Entry) Values() []string { return append(slices.Clone(e.Earlier), e.Applied.Value) }

// after is the entry of a live value that a run which was cut off was about to set in the
// place of another one of berth's. From whom it was to be taken over, its owner is as long.
func (e Entry) after(former Entry) Entry {
	if e.Applied.Type == Live {
		all := slices.DeleteFunc(former.Values(), func(v string) bool { return v == e.Applied.Value })
		slices.Sort(all)
		e.Earlier = slices.Compact(all)
		for o, asked := range former.Owners {
			if !e.Owns(o) {
				e, _ = e.Join(o, asked)
			}
		}
	}
	return e
}

// clone makes owners of its own.
func (e Entry) clone() Entry {
	e.Owners = maps.Clone(e.Owners)
	return e
}

// Others are the owners besides o, in order.
func (e Entry) Others(o desired.Owner) []desired.Owner {
	if len(e.Owners) == 0 || len(e.Owners) == 1 && e.Owns(o) {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.Owners)), func(other desired.Owner) bool { return other == o })
}

// Owns says whether an owner wants it.
func (e Entry) Owns(o desired.Owner) bool {
	_, ok := e.Owners[o]
	return ok
}

// Join returns the entry with an owner and what it asks for, and whether that
// is new.
func (e Entry) Join(o desired.Owner, asked string) (Entry, bool) {
	if have, ok := e.Owners[o]; ok && have == asked {
		return e, false
	}
	e = e.clone()
	if e.Owners == nil {
		e.Owners = map[desired.Owner]string{}
	}
	e.Owners[o] = asked
	return e, true
}

// Leave returns the entry without an owner.
func (e Entry) Leave(o desired.Owner) Entry {
	e = e.clone()
	delete(e.Owners, o)
	return e
}

// Unasked returns the entry with owners of whom nobody has asked for anything.
func (e Entry) Unasked() Entry {
	e = e.clone()
	for o := range e.Owners {
		e.Owners[o] = ""
	}
	return e
}

// InPlace says that only mode and owner of what is there are berth's.
func (e Entry) InPlace() bool { return e.Was != nil && e.Was.Stays() && e.Applied.Stays() }

// Gone says that berth took away what was there.
func (e Entry) Gone() bool { return e.Applied.Type == Gone }
