package kind

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// MaxHeld bounds the content of a file that is held in memory, in bytes.
const MaxHeld = 1 << 20

// Want plans a file of given content.
func (v *View) Want(t *Task, q *Change, info *host.Info) error {
	v.Expect(q)
	reason, have, err := v.difference(q, info)
	if err != nil || reason == "" {
		return err
	}
	q.Own = desired.IsWritten(have)
	verb := VerbUpdate
	if info == nil {
		verb = VerbCreate
	}
	if err := v.Take(t, q, info, verb, reason); err != nil {
		return err
	}
	switch a := &t.Actions[len(t.Actions)-1]; {
	case info == nil:
		a.Diff = Unified(q.Path, nil, q.Content)
	case have != nil:
		old := v.shown(q.Path, have, info.Mode)
		a.Diff = Unified(q.Path, &old, q.Content)
	}
	return nil
}

// shown is what a path holds, as a plan may show it. What berth wrote there for a
// document that calls it no secret may be read whatever the mode, and so may what
// somebody made of it.
func (v *View) shown(path string, have []byte, mode fs.FileMode) desired.Content {
	if e := v.Ledger.Entries[path]; e.Applied.Public && !e.Adopted {
		return desired.Bytes(have)
	}
	return secretIfNarrow(have, mode)
}

// difference says in words how a path differs from what a change makes of it; ""
// if it does not. Sizes are compared first: a large file is not read.
func (v *View) difference(q *Change, info *host.Info) (reason string, have []byte, err error) {
	switch {
	case info == nil:
		return "absent", nil, nil
	case !info.IsRegular():
		return "is " + ledger.DescribeType(v.Host, q.Path, info) + ", want a file", nil, nil
	case info.Size != int64(len(q.Content.Data())) && info.Size > maxDiff:
		return "content differs", nil, nil
	}
	attrs, sum := v.AttributeDifference(q.Path, info, q.Attrs), q.contentSum()
	if attrs == "" && v.contents.sum(q.Path, info) == sum {
		return "", nil, nil
	}
	if have, err = v.Host.ReadFile(q.Path); err != nil {
		return "", nil, err
	}
	if !slices.Equal(have, q.Content.Data()) {
		return "content differs", have, nil
	}
	v.contents.hold(q.Path, sum, info, v.Host.Now())
	return attrs, have, nil
}

// WantLink plans a link.
func (v *View) WantLink(t *Task, q *Change, verb Verb) error {
	info, err := v.Lstat(q.Path)
	if err != nil {
		return err
	}
	v.Expect(q)
	reason := "absent"
	if info != nil {
		reason = "is " + ledger.DescribeType(v.Host, q.Path, info) + ", want a link to " + q.Target
		if target, err := v.Host.Readlink(q.Path); err == nil && target == q.Target {
			return nil
		}
	} else if verb == VerbUpdate {
		verb = VerbCreate
	}
	return v.Take(t, q, info, verb, reason)
}

// RepairAttributes plans a change of which mode or owner differ from what is
// there.
func (v *View) RepairAttributes(t *Task, q *Change, info *host.Info) error {
	reason := v.AttributeDifference(q.Path, info, q.Attrs)
	if reason == "" {
		return nil
	}
	return v.Take(t, q, info, VerbUpdate, q.Path+": "+reason)
}

// NotDirectoryError is something that stands where a directory is wanted, or the
// other way round.
type NotDirectoryError string

// Error says what is there.
func (e NotDirectoryError) Error() string { return "there is " + string(e) + " already" }

// RemovePath plans the end of a name that this owner wants no more: deleted, or the
// original restored. What another owner still wants stays; what is no longer as berth made it,
// too, and is reported.
func (v *View) RemovePath(name string, e ledger.Entry) error {
	t := &Task{ID: removalID(name, e), Base: &desired.Base{}}
	if len(e.Owners) > 1 {
		t.Leaves = []string{name}
		v.Add(t)
		return nil
	}
	info, err := v.Lstat(name)
	if err != nil {
		return err
	}
	if e.Was != nil && v.bars(name, e.Was) {
		v.hold(name, e, info)
		return nil
	}
	if done, err := e.Undone(v.Host, name, info); err != nil || done {
		v.vanished = append(v.vanished, name)
		return err
	}
	switch kept := v.keep(name, e, info); {
	case e.Adopted:
		t.Kept = append(t.Kept, name+" is no longer wanted and is kept: it was there before berth, or before berth lost its ledger")
		t.Leaves = append(t.Leaves, name)
	case kept != "":
		t.Leaves = append(t.Leaves, name)
		if !e.Parent {
			t.Kept = append(t.Kept, name+" is no longer wanted and is kept: "+kept)
		}
	case e.Was != nil:
		q, err := v.restore(name, e.Was)
		if errors.Is(err, ledger.ErrLost) {
			t.Leaves = append(t.Leaves, name)
			t.Kept = append(t.Kept, name+" is no longer wanted and is kept: what was there before is lost from "+ledger.OriginalsDir)
			break
		}
		if err != nil {
			return err
		}
		q.Seen = info
		t.Changes = append(t.Changes, q)
		if q.Temporary() {
			v.Expect(q)
		}
		t.Act(VerbRestore, "no longer wanted; the original comes back", DisruptNone)
	default:
		t.Changes = append(t.Changes, &Change{Type: ledger.Gone, Path: name, Seen: info, Forget: true})
		v.becomes[name] = ledger.Gone
		t.Act(VerbDelete, "no longer wanted", DisruptNone)
	}
	v.Add(t)
	return nil
}

// hold plans that a name goes whose original does not come back before nothing asks for its
// absence any more.
func (v *View) hold(name string, e ledger.Entry, info *host.Info) {
	t := &Task{ID: removalID(name, e), Base: &desired.Base{}}
	t.Changes = append(t.Changes, &Change{Type: ledger.Gone, Path: name, Seen: info})
	v.becomes[name] = ledger.Gone
	t.Act(VerbDelete, "no longer wanted; what was there before would be in the way of what is", DisruptNone)
	v.Add(t)
}

// restore is the change that brings an original back.
func (v *View) restore(name string, was *ledger.Standing) (*Change, error) {
	q := &Change{Type: was.Type, Path: name, Target: was.Target, Attrs: was.Attributes(), Forget: true}
	if was.Type != ledger.File {
		return q, nil
	}
	data, ok, err := v.Ledger.Content(v.Host, was.Sum, MaxHeld)
	if err == nil && !ok {
		q.Stored = was.Sum
		return q, nil
	}
	q.Content = secretIfNarrow(data, q.Attrs.Mode)
	return q, err
}

func removalID(name string, e ledger.Entry) desired.ID {
	switch e.Applied.Type {
	case ledger.Directory:
		return desired.DirectoryID(name)
	case ledger.Link:
		return desired.LinkID(name)
	}
	return desired.FileID(name)
}

// IsAsMade says whether a name holds still what berth put there.
func (v *View) IsAsMade(name string, info *host.Info) bool {
	return v.Ledger.Made(name) && v.keep(name, v.Ledger.Entries[name], info) == ""
}

// keep says why a name is not berth's to remove; "" if it is.
func (v *View) keep(name string, e ledger.Entry, info *host.Info) string {
	switch {
	case e.InPlace():
		return keepMode(e, info)
	case e.Applied.Type == ledger.Directory:
		return v.keepDir(name, info)
	case e.Seed:
		return "it was handed over to its user"
	case info == nil:
		return ""
	case e.Applied.Type == ledger.Link && e.Applied.Target != "":
		if target, err := v.Host.Readlink(name); err != nil || target != e.Applied.Target {
			return "it was changed"
		}
	case e.Gone() && info != nil:
		return "something stands there again"
	case e.Applied.Sum != "":
		if !info.IsRegular() {
			return "its content was changed"
		}
		if sum, err := ledger.ContentSum(v.Host, name); err != nil || sum != e.Applied.Sum {
			return "its content was changed"
		}
	case v.otherDownload(name, e, info):
		return "its content was changed"
	}
	return ""
}

// otherDownload says whether somebody put something else where a download was. Time and size
// count where nobody has read it.
func (v *View) otherDownload(name string, e ledger.Entry, info *host.Info) bool {
	switch {
	case !e.Altered(info) || v.Ledger.Halfway(name):
		return false
	case e.Held == nil || !info.IsRegular():
		return ledger.Mark(info) != e.Mark
	}
	sum, err := v.Digest(name, info)
	return err != nil || sum != e.Held.Sum
}

func keepMode(e ledger.Entry, info *host.Info) string {
	dir := e.Applied.Type == ledger.Directory
	switch {
	case info.Mode.IsDir() != dir || !dir && !info.IsRegular():
		return "it is something else now"
	case e.Applied.Mode != 0 && !e.HalfChanged(info) && ledger.AttributeDifference(info, e.Applied.Mode, e.Applied.UID, e.Applied.GID) != "":
		return "its mode or owner was changed"
	}
	return ""
}

func (v *View) keepDir(name string, info *host.Info) string {
	if info == nil {
		return ""
	}
	if !info.Mode.IsDir() {
		return "it is no directory any more"
	}
	if v.Uncovers(name) {
		return ""
	}
	names, err := v.Host.ReadDir(name)
	if err != nil {
		return err.Error()
	}
	for _, n := range names {
		if !v.Deletes(name + "/" + n) {
			return "it is not empty"
		}
	}
	return ""
}

// Absence says that an error of the tree means that there is nothing.
func Absence(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
