// Package block is the kind of parts of files that others own, too: lines between
// two marks, or assignments.
package block

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Kind is the kind of blocks.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "block" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind. The file itself is not berth's.
func (Kind) Names(_ *kind.View, r desired.Resource) []string { return []string{string(r.ID())} }

// was is what the ledger keeps of a file before a block came: whether it was there,
// all of it where that is small, and the lines that said something of the block's keys.
type was struct {
	Absent bool                `json:"absent,omitempty"`
	Text   *string             `json:"text,omitempty"`
	Lines  map[string][]string `json:"lines,omitempty"`
	Keys   []string            `json:"keys,omitempty"`
	// Asked are the keys of the version that was in force last; nil where an older berth has
	// written this.
	Asked []string `json:"asked"`
}

// inForce is w without the keys that went with versions before the last one: what says them
// now is somebody else's. A run of this block that was cut off may have left them.
func (w was) inForce(v *kind.View, id string) was {
	if v.Ledger.Owed != nil {
		if _, cut := v.Ledger.Owed.Claims[id]; cut {
			return w
		}
	}
	if w.Asked == nil {
		return w
	}
	lines := map[string][]string{}
	for _, key := range w.Asked {
		if l, ok := w.Lines[key]; ok {
			lines[key] = l
		}
	}
	w.Keys, w.Lines = w.Asked, lines
	return w
}

// maxText bounds a file of which the ledger keeps all, in bytes.
const maxText = 16 << 10

// without is a text without the block. Where nobody has touched the rest since, that is the
// text of before to the byte; else what the keys' lines were comes back at the first place
// of each key.
func (w was) without(text, name string) string {
	if len(w.Keys) == 0 {
		without := withLines(text, name, "")
		if w.Text != nil && without == ended(*w.Text) {
			return *w.Text
		}
		return without
	}
	if w.Text != nil && withoutKeys(text, w.Keys, nil) == withoutKeys(*w.Text, w.Keys, nil) {
		return *w.Text
	}
	return withoutKeys(text, w.Keys, w.Lines)
}

// Observe implements kind.Kind.
func (Kind) Observe(_ context.Context, v *kind.View, t *kind.Task, r desired.Resource) error {
	b := r.(*desired.Block)
	f, err := open(v, v.Real(b.Path))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.prepare(v, t); err != nil {
		return err
	}
	before, err := f.before(v, b)
	if err != nil {
		return err
	}
	text := f.text
	switch {
	case b.First:
		text = withFirst(text, b.Name, b.Lines)
	case b.Lines != "":
		text = withLines(text, b.Name, b.Lines)
	default:
		text = before.with(text, b.Keys)
	}
	if err := claim(v, t, b, before); err != nil {
		return err
	}
	return f.become(v, t, text, b.Mode.Perm(), "its part "+b.Name+" differs")
}

// before is what was in the file before the block, or before those of its keys that
// are new.
func (f *shared) before(v *kind.View, b *desired.Block) (was, error) {
	w := was{Absent: f.absent || madeByAnother(v, b), Lines: linesOf(f.text, b.Keys), Keys: sortedKeys(b.Keys), Asked: sortedKeys(b.Keys)}
	if len(f.text) <= maxText {
		text := f.text
		w.Text = &text
	}
	e, known := v.Ledger.Entries[string(b.ID())]
	if !known || e.Was == nil {
		return w, nil
	}
	var old was
	if err := json.Unmarshal([]byte(e.Was.Value), &old); err != nil {
		return w, fmt.Errorf("read what was in %s: %w", b.Path, err)
	}
	old = old.inForce(v, string(b.ID()))
	w.Absent, w.Text = old.Absent, old.Text
	added := map[string]string{}
	for key := range b.Keys {
		if !slices.Contains(old.Keys, key) {
			added[key] = ""
		}
	}
	if w.Text != nil && !maps.EqualFunc(linesOf(*w.Text, added), linesOf(f.text, added), slices.Equal[[]string]) {
		w.Text = nil // a new key takes the place of what somebody has written since
	}
	for _, key := range old.Keys {
		w.Keys = append(w.Keys, key)
		delete(w.Lines, key)
		if lines := old.Lines[key]; len(lines) > 0 {
			w.Lines[key] = lines
		}
	}
	slices.Sort(w.Keys)
	w.Keys = slices.Compact(w.Keys)
	return w, nil
}

// madeByAnother says whether an earlier block found no file: then there is none when all have
// gone.
func madeByAnother(v *kind.View, b *desired.Block) bool {
	for id, e := range v.Ledger.Entries {
		path, _, _ := strings.Cut(strings.TrimPrefix(id, "block:"), "#")
		if path != b.Path || !strings.HasPrefix(id, "block:") || e.Was == nil {
			continue
		}
		var other was
		if json.Unmarshal([]byte(e.Was.Value), &other) == nil && other.Absent {
			return true
		}
	}
	return false
}

// claim enters the block; what the ledger says of before grows with its keys.
func claim(v *kind.View, t *kind.Task, b *desired.Block, before was) error {
	note, err := json.Marshal(before)
	if err != nil {
		return err
	}
	if err := v.ClaimLive(t, string(b.ID()), asked(b), string(note), kind.Equal); err != nil || len(t.Claims) == 0 {
		return err
	}
	c := &t.Claims[len(t.Claims)-1]
	c.Was, c.Again = string(note), true
	return nil
}

// with is a text with keys. Those that are wanted no more say again what they said.
func (w was) with(text string, keys map[string]string) string {
	gone := others(w.Keys, keys)
	if w.Text != nil && len(gone) > 0 && withoutKeys(text, w.Keys, nil) == withoutKeys(*w.Text, w.Keys, nil) {
		return withKeys(*w.Text, keys)
	}
	return withKeys(withoutKeys(text, gone, w.Lines), keys)
}

// others are keys that are no longer among those that are wanted.
func others(keys []string, wanted map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { _, ok := wanted[key]; return ok })
}

// asked tells two blocks of one name apart.
func asked(b *desired.Block) string {
	text, _ := json.Marshal(b.Keys)
	return desired.Text(b.Lines + string(text)).Sum()
}

// Remove implements kind.Remover: the part goes, what it replaced comes back, and a
// file that was not there goes when nothing else is in it.
func (Kind) Remove(_ context.Context, v *kind.View, t *kind.Task, id string, e ledger.Entry) error {
	path, name, _ := strings.Cut(strings.TrimPrefix(id, "block:"), "#")
	f, err := open(v, v.Real(path))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.info == nil {
		return nil
	}
	switch {
	case f.whole == "" && f.change == nil && v.IsAsMade(f.path, f.info):
		return nil // a run that was cut off between part and whole: it goes as a whole
	case f.whole == "" && f.other != "":
		t.Kept = append(t.Kept, fmt.Sprintf("the part %s of %s is no longer wanted, and %s is kept: it is %s, not a file", name, path, path, f.other))
		return nil
	}
	var before was
	if e.Was != nil && e.Was.Value != "" {
		if err := json.Unmarshal([]byte(e.Was.Value), &before); err != nil {
			return fmt.Errorf("read what was in %s: %w", path, err)
		}
	}
	text := before.inForce(v, id).without(f.text, name)
	absent := text == "" && before.Absent
	switch {
	case f.whole != "" && v.Expected(f.path) != nil: // a file that is there and stays loses the part
		f.text = text
		f.replaced(v, absent)
		return nil
	case absent:
		return f.delete(t)
	}
	return f.become(v, t, text, 0, "its part "+name+" is no longer wanted")
}

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
	// whole is the resource that is all of the file; "" where there is none.
	whole desired.ID
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
		return sync.OnceValue(func() map[string]desired.ID { return wholeFiles(v) })
	}).(func() map[string]desired.ID)()[path]
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

// wholeFiles are the files of a state's resources, by what their paths lead to.
func wholeFiles(v *kind.View) map[string]desired.ID {
	out := map[string]desired.ID{}
	for _, r := range v.State.Resources {
		for _, p := range r.FilePaths() {
			out[v.Real(p)] = r.ID()
		}
	}
	return out
}

// prepare finds what a part comes into, and whether it may.
func (f *shared) prepare(v *kind.View, t *kind.Task) error {
	if f.whole != "" {
		return &fs.PathError{Op: "edit", Path: f.path, Err: fmt.Errorf("%s is the whole file", f.whole)}
	}
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

// takeOff lets go of the file, or the link, of an earlier document, of which this one wants a part: that comes
// into what stood there before, or into what somebody has made of the file since.
func (f *shared) takeOff(v *kind.View, t *kind.Task) error {
	e, ours := v.Ledger.Entries[f.path]
	if f.change != nil || f.info == nil || !ours || e.Applied.Type != ledger.File && e.Applied.Type != ledger.Link {
		return nil
	}
	t.Forget = append(t.Forget, f.path)
	was, text, ok, err := v.Beneath(f.path, e, f.info)
	if err != nil || !ok {
		return err
	}
	f.text, f.absent, f.other = string(text), was == nil, ""
	if was != nil {
		f.attrs = was.Attributes()
	}
	return nil
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
	t.Act(verb, reason, kind.DisruptNone).Diff = f.diff(text)
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
func (f *shared) diff(text string) string {
	if f.info != nil && f.info.Mode&0o077 == 0 {
		return ""
	}
	have := desired.Text(f.text)
	if f.change == nil {
		have = desired.Text(f.disk)
	}
	return kind.Unified(f.path, &have, desired.Text(text))
}

func (f *shared) delete(t *kind.Task) error {
	t.Act(kind.VerbDelete, "nothing is left in it", kind.DisruptNone)
	f.text = ""
	if f.change != nil {
		f.change.Type = ledger.Gone
		return nil
	}
	f.change = &kind.Change{Type: ledger.Gone, Path: f.path, Unclaimed: true, Seen: f.info}
	t.Changes = append(t.Changes, f.change)
	return nil
}
