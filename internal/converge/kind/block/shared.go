package block

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// shared is a file with all blocks of one run in it.
type shared struct {
	mu   sync.Mutex
	path string
	info *host.Info
	// disk is what it holds, text what it is to hold.
	disk, text string
	change     *kind.Change
	// absent: there is none without the blocks; else attrs are its attributes.
	absent bool
	attrs  host.Attributes
	// other says what it is, where it is no file.
	other string
	// whole is the resource that is all of the file, nil for none.
	whole desired.Resource
	err   error
}

func open(v *kind.View, path string) (*shared, error) {
	f := v.Shared("block:"+path, func() any {
		return sync.OnceValue(func() *shared { return read(v, path) })
	}).(func() *shared)()
	return f, f.err
}

func read(v *kind.View, path string) *shared {
	f := &shared{path: path}
	f.whole = v.Shared("whole files", func() any {
		return sync.OnceValue(func() map[string]desired.Resource { return wholeFiles(v) })
	}).(func() map[string]desired.Resource)()[path]
	var err error
	if f.info, err = v.Lstat(path); err != nil || f.info == nil {
		f.err, f.absent = err, true
		return f
	}
	if !f.info.IsRegular() {
		f.other = ledger.DescribeType(v.Host, path, f.info)
		return f
	}
	f.attrs = host.Attributes{Mode: ledger.PermBits(f.info.Mode), UID: f.info.UID, GID: f.info.GID}
	if f.attrs.Xattrs, f.err = ledger.KeptXattrs(v.Host, path); f.err != nil {
		return f
	}
	data, err := v.Host.ReadFile(path)
	f.disk, f.err = string(data), err
	f.text = f.disk
	return f
}

// wholeFiles are the files of a state's other resources, by what their paths lead to.
func wholeFiles(v *kind.View) map[string]desired.Resource {
	out := map[string]desired.Resource{}
	for _, r := range v.State.Resources {
		if r.Kind() == (Kind{}).Name() {
			continue
		}
		for _, p := range r.FilePaths() {
			out[v.Real(p)] = r
		}
	}
	return out
}

// prepare finds what a part comes into, and whether it may.
func (f *shared) prepare(v *kind.View, t *kind.Task) error {
	if err := f.othersWhole(v); err != nil {
		return err
	}
	if err := f.takeOff(v, t); err != nil {
		return err
	}
	if f.other != "" {
		return &fs.PathError{Op: "edit", Path: f.path, Err: fmt.Errorf("it is %s, not a file", f.other)}
	}
	return nil
}

// othersWhole refuses a part of a file of which another owner has all: each would undo what the
// other does.
func (f *shared) othersWhole(v *kind.View) error {
	e := v.Ledger.Entries[f.path]
	if others := e.Others(v.State.Owner); len(others) > 0 && (e.Applied.Type == ledger.File || e.Applied.Type == ledger.Link) {
		return &kind.OwnedElsewhereError{Path: f.path, Owner: v.State.Owner, Other: others[0], Part: true}
	}
	return nil
}

// takeOff lets go of the file, or the link, of an earlier document, of which this one wants a
// part: that comes into what stood there before, or into what somebody has made of it since.
func (f *shared) takeOff(v *kind.View, t *kind.Task) error {
	e, ours := v.Ledger.Entries[f.path]
	if f.change != nil || f.info == nil || !ours || e.Applied.Type != ledger.File && e.Applied.Type != ledger.Link {
		return nil
	}
	t.Forget = append(t.Forget, f.path)
	was, text, ok, err := f.beneath(v, e)
	if err != nil || !ok {
		return err
	}
	f.text, f.absent, f.other = string(text), was == nil, ""
	switch {
	case f.absent:
	case was.Type == ledger.Link:
		f.other = "a link to " + was.Target
	default:
		f.attrs = was.Attributes()
	}
	return nil
}

// beneath is what stood at the path before berth put a file there, with the text of a file; nil
// for nothing. ok is false where the file is not as berth put it any more, or what was there is
// no text or lost.
func (f *shared) beneath(v *kind.View, e ledger.Entry) (was *ledger.Standing, text []byte, ok bool, err error) {
	switch {
	case !v.IsAsMade(f.path, f.info):
		return nil, nil, false, nil
	case e.Was == nil || e.Was.Type != ledger.File:
		return e.Was, nil, true, nil
	}
	text, ok, err = v.Ledger.Content(v.Host, e.Was.Sum, kind.MaxHeld)
	if errors.Is(err, ledger.ErrLost) {
		return nil, nil, false, nil
	}
	return e.Was, text, ok, err
}

// isReplaced says whether a file of the document's own comes in place of what stands there.
func (f *shared) isReplaced(v *kind.View) bool {
	q := v.Expected(f.path)
	return q != nil && q != f.change
}

// replaced tells the change that makes a file of a document's own of it what stood there but
// for parts of berth's: that is the original.
func (f *shared) replaced(v *kind.View, absent bool) {
	for _, t := range v.Tasks() {
		for _, q := range t.Changes {
			if q.Path == f.path && q.Foreign && absent {
				q.Foreign = false
			} else if q.Path == f.path && q.Foreign {
				q.Original = &f.text
			}
		}
	}
}

// become plans that the file holds a text. The first block of a file carries the
// change for all.
func (f *shared) become(v *kind.View, t *kind.Task, text string, mode fs.FileMode, reason string) error {
	if text == f.text && (f.change != nil || text == f.disk) { // what stands there may be of an earlier document
		return nil
	}
	verb := kind.VerbUpdate
	if f.info == nil {
		verb = kind.VerbCreate
	}
	t.Act(verb, reason, kind.DisruptNone).Diff = f.diff(desired.Text(text))
	f.text = text
	if f.change != nil {
		f.change.Type, f.change.Content = ledger.File, desired.Text(text)
		return nil
	}
	attributes := f.attrs
	if f.absent {
		attributes = host.Attributes{Mode: mode}
	}
	f.change = &kind.Change{Type: ledger.File, Path: f.path, Content: desired.Text(text), Attrs: attributes, Unclaimed: true, Seen: f.info}
	v.Expect(f.change)
	t.Changes = append(t.Changes, f.change)
	return nil
}

// diff shows nothing of what others may not read.
func (f *shared) diff(want desired.Content) string {
	if f.info != nil && f.info.Mode&0o077 == 0 {
		return ""
	}
	have := desired.Text(f.text)
	if f.change == nil {
		have = desired.Text(f.disk)
	}
	return kind.Unified(f.path, &have, want)
}

// end plans what is there when the last part has gone of a file that parts alone made: nothing,
// or the seed that found the file in its place.
func (f *shared) end(t *kind.Task) {
	q := kind.Change{Type: ledger.Gone, Path: f.path, Unclaimed: true, Seen: f.info}
	verb, reason := kind.VerbDelete, "nothing is left in it"
	if seed, ok := f.whole.(*desired.File); ok && seed.Life == desired.Seed {
		q.Type, q.Content, q.Seed, q.Unclaimed = ledger.File, seed.Content, true, false
		q.Attrs = host.Attributes{Mode: seed.Mode.Perm(), UID: seed.UID, GID: seed.GID}
		verb, reason = kind.VerbUpdate, "nothing else is left in it"
	}
	if a := t.Act(verb, reason, kind.DisruptNone); q.Seed {
		a.Diff = f.diff(q.Content)
	}
	f.text = ""
	if f.change != nil {
		*f.change = q
		return
	}
	f.change = &q
	t.Changes = append(t.Changes, f.change)
}
