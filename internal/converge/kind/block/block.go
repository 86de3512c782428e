// Package block is the kind of parts of files that others own, too: lines between
// two marks, or assignments.
package block

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Kind is the kind of blocks.
type Kind struct{}

var _ kind.Remover = Kind{}

// Name implements kind.Kind.
func (Kind) Name() string { return "block" }

// Pass implements kind.Kind.
func (Kind) Pass() kind.Pass { return kind.Tree }

// Names implements kind.Kind. The file itself is not berth's.
func (Kind) Names(v *kind.View, r desired.Resource) []string {
	return []string{nameOf(v, r.(*desired.Block))}
}

// nameOf is what the ledger calls a block: one name in one file, whichever way its path is
// spelled.
func nameOf(v *kind.View, b *desired.Block) string {
	return string(desired.BlockID(v.Real(b.Path), b.Name))
}

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
// text of before to the byte; else what the keys' lines were comes back at the first line
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
	e, known := v.Ledger.Entries[nameOf(v, b)]
	if !known || e.Was == nil {
		return w, nil
	}
	var old was
	if err := json.Unmarshal([]byte(e.Was.Value), &old); err != nil {
		return w, fmt.Errorf("read what was in %s: %w", b.Path, err)
	}
	old = old.inForce(v, nameOf(v, b))
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
		if !strings.HasPrefix(id, "block:") || e.Was == nil || path != v.Real(b.Path) {
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
	if err := v.ClaimLive(t, nameOf(v, b), asked(b), string(note), kind.Equal); err != nil || len(t.Claims) == 0 {
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
	f, err := open(v, path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.info == nil {
		return nil
	}
	switch {
	case f.whole == nil && f.change == nil && v.IsAsMade(f.path, f.info):
		return nil // a run that was cut off between part and whole: it goes as a whole
	case f.whole == nil && f.other != "":
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
	case f.whole != nil && f.isReplaced(v): // a file that is there and stays loses the part
		f.text = text
		f.replaced(v, absent)
		return nil
	case absent:
		f.end(t)
		return nil
	}
	return f.become(v, t, text, 0, "its part "+name+" is no longer wanted")
}
