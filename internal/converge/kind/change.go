package kind

import (
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Change is one name in the tree that commit changes.
type Change struct {
	// Type is what the name becomes; ledger.Attributes changes mode and owner alone.
	Type ledger.Type
	// Path is real: its parents are no links.
	Path    string
	Content desired.Content
	Target  string
	Attrs   host.Attributes
	// Prepared: another writes the temporary file.
	Prepared bool
	// Stored is the sum of the original that becomes the content; it is too large
	// to be held.
	Stored string
	// Late changes make something start at boot: they follow when all others are
	// durable.
	Late bool
	Before
	// Asked is what the owner asks for where the content does not tell.
	Asked string
	// Parent is a directory on the way to another change.
	Parent bool
	// Forget drops the ledger entry: the name is not berth's any more.
	Forget bool
	// Generated content is not compared with the ledger.
	Generated bool
	// Unclaimed: the ledger does not speak of it.
	Unclaimed bool
	// Seed content is its owner's once it is there.
	Seed bool
	// Seen is what is there when the plan is made.
	Seen *host.Info
	sum  string // of Content, once somebody asked
}

// Before is whose what a change replaces is.
type Before struct {
	// Foreign: it was not berth's and is kept as the original.
	Foreign bool
	// Original is the text of what is kept, where that is not all that is there now; nil where
	// it is.
	Original *string
	// Own: it says itself that berth wrote it.
	Own bool
	// From are other owners that lose the name to this one.
	From []desired.Owner
}

// Temporary says whether commit renames a temporary file to the path.
func (q *Change) Temporary() bool { return q.Type == ledger.File || q.Type == ledger.Link }

// InPlace says that what is there stays, with other attributes.
func (q *Change) InPlace() bool { return q.Type == ledger.Directory || q.Type == ledger.Attributes }

// OverDirectory says that a directory has to go for it.
func (q *Change) OverDirectory() bool { return q.Temporary() && q.Seen != nil && q.Seen.Mode.IsDir() }

// OverFile says that a file or a link has to go for a directory.
func (q *Change) OverFile() bool {
	return q.Type == ledger.Directory && q.Seen != nil && !q.Seen.Mode.IsDir()
}

// New says that a directory has to be made.
func (q *Change) New() bool { return q.Type == ledger.Directory && q.Seen == nil }

// Standing is what the ledger remembers of the change.
func (q *Change) Standing() ledger.Standing {
	s := ledger.Standing{Type: q.Type}
	switch q.Type {
	case ledger.Gone:
		return s
	case ledger.Link:
		if !q.Generated {
			s.Target = q.Target
		}
		return s
	case ledger.File:
		s.Sum = q.Sum()
		s.Public = s.Sum != "" && q.Stored == "" && !q.Content.IsSecret()
	}
	s.Mode, s.UID, s.GID = ledger.PermBits(q.Attrs.Mode), q.Attrs.UID, q.Attrs.GID
	return s
}

// Sum is that of a file's content; "" where it is not known or not compared.
func (q *Change) Sum() string {
	switch {
	case q.Prepared, q.Generated, q.Type != ledger.File:
		return ""
	case q.Stored != "":
		return q.Stored
	}
	return q.contentSum()
}

func (q *Change) contentSum() string {
	if q.sum == "" {
		q.sum = q.Content.Sum()
	}
	return q.sum
}

// Provenance is what a file says of its content, for the day on which the ledger is lost.
func (q *Change) Provenance() []byte {
	sum, _ := hex.DecodeString(q.contentSum())
	return sum
}

// Revision identifies what a unit will find at the path; ok is false where that is
// not known yet.
func (q *Change) Revision() (revision string, ok bool) {
	switch {
	case q.Type == ledger.Gone:
		return Absent, true
	case q.Type == ledger.Link:
		return "link:" + q.Target, true
	case q.Prepared:
		return "", false
	case q.Stored != "":
		return q.Stored, true
	}
	return q.contentSum(), true
}

// Absent is the revision of a path at which there is nothing.
const Absent = "absent"

// TakenOver is what a reason says of other owners.
func (q *Change) TakenOver() string { return takenOver(q.From) }

func takenOver(from []desired.Owner) string {
	if len(from) == 0 {
		return ""
	}
	names := make([]string, len(from))
	for i, o := range from {
		names[i] = string(o)
	}
	return "; taken over from " + strings.Join(names, " and ")
}

// agrees says whether a change makes of a path what its other owners wanted of it:
// then it repairs what somebody else changed.
func (q *Change) agrees(e ledger.Entry, owner desired.Owner) bool {
	want := q.Standing()
	attributes := e.Applied.Mode == 0 || e.Applied.SameAttributes(&want)
	switch {
	case q.Type == ledger.Gone:
		return e.Gone()
	case q.Type == ledger.Directory:
		return e.Applied.Type == ledger.Directory && (e.Parent || attributes || !asksOtherwise(e, owner, q.Asked))
	case q.Type == ledger.Attributes:
		return attributes
	case q.Type == ledger.Link:
		return q.leadsAs(&e.Applied)
	case q.Asked != "":
		return sameAsked(e, owner, q.Asked) && (attributes || e.Adopted)
	}
	return e.Applied.Sum != "" && e.Applied.Sum == want.Sum && attributes
}

// asksOtherwise says whether another owner asks for something else of a directory. Who has files
// in it asks for nothing.
func asksOtherwise(e ledger.Entry, owner desired.Owner, asked string) bool {
	return slices.ContainsFunc(e.Others(owner), func(o desired.Owner) bool { return e.Owners[o] != "" && e.Owners[o] != asked })
}

func sameAsked(e ledger.Entry, owner desired.Owner, asked string) bool {
	for _, o := range e.Others(owner) {
		if e.Owners[o] != asked {
			return false
		}
	}
	return true
}

// leadsAs says whether a link is the one that the change makes. One that enables
// a unit may take any way to it.
func (q *Change) leadsAs(applied *ledger.Standing) bool {
	return applied.Type == ledger.Link && (applied.Target == q.Target || q.Late && path.Base(applied.Target) == path.Base(q.Target))
}

// adoptedAs says whether a change makes an adopted name what it was when it was
// adopted.
func (q *Change) adoptedAs(e ledger.Entry) bool {
	want := q.Standing()
	switch q.Type {
	case ledger.Link:
		return q.leadsAs(&e.Applied)
	case ledger.Directory, ledger.Attributes:
		return e.Applied.SameAttributes(&want)
	case ledger.File:
		return e.Applied.Sum != "" && e.Applied.Sum == want.Sum && e.Applied.SameAttributes(&want)
	}
	return false
}

// secretIfNarrow treats content that others may not read as secret, so that no
// plan shows it.
func secretIfNarrow(data []byte, mode fs.FileMode) desired.Content {
	if mode&0o077 == 0 {
		return desired.SecretBytes(data)
	}
	return desired.Bytes(data)
}
