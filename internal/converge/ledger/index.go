package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const indexPath = OriginalsDir + "/index.json"

// What the index holds itself, in bytes: one content, and all of them. It is written
// as a whole.
const (
	maxInline  = 64 << 10
	maxInlines = 4 << 20
)

// index says of the originals what the ledger says of them, for the day on which
// the ledger is lost, and holds the small ones. A large one is stored beside it
// under "content-" and its own sum.
type index struct {
	Names map[string]original `json:"names"`
	// Contents are by their sha256.
	Contents map[string][]byte `json:"contents,omitempty"`

	mu   sync.Mutex
	size int
}

// original is what stood at a name before berth.
type original struct {
	// Owner is whose contract replaced it.
	Owner desired.Owner `json:"owner,omitempty"`
	Was   Standing      `json:"was"`
}

// originals are those of a machine. The zero value has read nothing.
type originals struct {
	mu       sync.Mutex
	index    *index
	contents singleflight.Group
}

// load reads the index once. One that is torn is an empty one: the ledger has the
// names too.
func (o *originals) load(h host.FS) (*index, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.index != nil {
		return o.index, nil
	}
	data, _, err := ReadFile(h, indexPath)
	if err != nil {
		return nil, fmt.Errorf("read originals: %w", err)
	}
	x := &index{}
	if json.Unmarshal(data, x) != nil {
		x = &index{}
	}
	if x.Names == nil {
		x.Names = map[string]original{}
	}
	if x.Contents == nil {
		x.Contents = map[string][]byte{}
	}
	for _, content := range x.Contents {
		x.size += len(content)
	}
	o.index = x
	return x, nil
}

// add stores a content; ok is false where it has no room.
func (x *index) add(content []byte) (sum string, ok bool) {
	hash := sha256.Sum256(content)
	sum = hex.EncodeToString(hash[:])
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.Contents[sum]; ok {
		return sum, true
	}
	if len(content) > maxInline || x.size+len(content) > maxInlines {
		return "", false
	}
	x.Contents[sum] = content
	x.size += len(content)
	return sum, true
}

func (x *index) note(name string, o original) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Names[name] = o
}

// content is one that the index holds, as it was stored.
func (x *index) content(sum string) ([]byte, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	content, ok := x.Contents[sum]
	hash := sha256.Sum256(content)
	return content, ok && hex.EncodeToString(hash[:]) == sum
}

// save makes the index durable, and with it all names beside it.
func (x *index) save(h host.FS) error {
	data, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("print originals: %w", err)
	}
	if err := host.WriteFile(h, indexPath, append(data, '\n'), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write originals: %w", err)
	}
	return nil
}

// SyncOriginals makes durable what Keep stored, once for many.
func (l *Ledger) SyncOriginals(h host.FS) error {
	x, err := l.kept.load(h)
	if err != nil {
		return err
	}
	return x.save(h)
}

// ErrLost is an original of which berth has kept nothing that could come back.
var ErrLost = errors.New("its content is lost")

// Content is that of an original; the error is ErrLost where it is not there any more, or
// was damaged. One of more than limit bytes is not read: then ok
// is false, and CopyOf copies it from ContentName.
func (l *Ledger) Content(h host.FS, sum string, limit int64) (data []byte, ok bool, err error) {
	x, err := l.kept.load(h)
	if err != nil {
		return nil, false, err
	}
	if data, ok := x.content(sum); ok {
		return data, true, nil
	}
	info, err := h.Lstat(ContentName(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, ErrLost
	}
	if err != nil || info.Size > limit {
		return nil, false, err
	}
	data, err = h.ReadFile(ContentName(sum))
	if hash := sha256.Sum256(data); err == nil && hex.EncodeToString(hash[:]) != sum {
		return nil, false, ErrLost
	}
	return data, err == nil, err
}

// named are the originals of which the entries speak, each with an owner that is
// left.
func (l *Ledger) named(had map[string]original) map[string]original {
	names := map[string]original{}
	for name, e := range l.Entries {
		if e.Was == nil || !IsPath(name) {
			continue
		}
		o := original{Owner: had[name].Owner, Was: *e.Was}
		if !e.Owns(o.Owner) && len(e.Owners) > 0 {
			o.Owner = e.Others("")[0]
		}
		names[name] = o
	}
	return names
}

// rebuild makes a ledger of the index.
func rebuild(h host.FS) (*Ledger, error) {
	l := &Ledger{Entries: map[string]Entry{}}
	x, err := l.kept.load(h)
	if err != nil {
		return nil, err
	}
	for name, o := range x.Names {
		if l.Entries[name], err = rebuilt(h, name, o); err != nil {
			return nil, fmt.Errorf("rebuild ledger: %w", err)
		}
	}
	l.fresh = len(x.Names) == 0
	return l, nil
}

// rebuilt is the entry of a name whose original is there. What berth made of it
// is not known any more, but that it took it away shows.
func rebuilt(h host.FS, name string, o original) (Entry, error) {
	e := Entry{Was: &o.Was, Applied: Standing{Type: File}}
	if o.Owner != "" {
		e, _ = e.Join(o.Owner, "")
	}
	if o.Was.Stays() {
		e.Applied.Type = o.Was.Type
		return e, nil
	}
	info, err := Lstat(h, name)
	switch {
	case err != nil:
		return e, err
	case info == nil:
		e.Applied.Type = Gone
	case info.Mode&fs.ModeSymlink != 0:
		e.Applied.Type = Link
		e.Applied.Target, err = h.Readlink(name)
	}
	return e, err
}

// Sweep puts originals in order: whose they are, and that none stays which the
// ledger does not name, since it came back, or since a run was cut off before it
// needed it.
func (l *Ledger) Sweep(h host.FS) error {
	files, err := h.ReadDir(OriginalsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep originals: %w", err)
	}
	x, err := l.kept.load(h)
	if err != nil {
		return err
	}
	changed := x.assign(l.named(x.Names))
	if changed && len(x.Names) > 0 {
		if err := x.save(h); err != nil {
			return err
		}
	}
	return x.sweep(h, files)
}

// assign makes the names those that are wanted, and says whether that changed
// anything.
func (x *index) assign(names map[string]original) bool {
	sums := sumsOf(names)
	same := maps.EqualFunc(x.Names, names, func(a, b original) bool { return reflect.DeepEqual(a, b) })
	x.Names = names
	before := len(x.Contents)
	maps.DeleteFunc(x.Contents, func(sum string, content []byte) bool {
		if !sums[sum] {
			x.size -= len(content)
		}
		return !sums[sum]
	})
	return !same || len(x.Contents) != before
}

func sumsOf(names map[string]original) map[string]bool {
	sums := map[string]bool{}
	for _, o := range names {
		sums[o.Was.Sum] = true
	}
	return sums
}

// sweep removes files that nothing names.
func (x *index) sweep(h host.FS, files []string) error {
	named, swept := map[string]bool{}, false
	for sum := range sumsOf(x.Names) {
		if _, inside := x.Contents[sum]; !inside {
			named[OriginalsDir+"/content-"+sum] = true
		}
	}
	named[indexPath] = len(x.Names) > 0
	for _, name := range files {
		if named[OriginalsDir+"/"+name] {
			continue
		}
		if err := RemoveIfThere(h, OriginalsDir+"/"+name); err != nil {
			return fmt.Errorf("sweep originals: %w", err)
		}
		swept = true
	}
	if !swept {
		return nil
	}
	return h.SyncDir(OriginalsDir)
}
