package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// entry is what berth remembers of one name that it put on the machine.
type entry struct {
	// Owners wanted it; the last to go takes it along.
	Owners []desired.Owner `json:"owners"`
	// Sum is the sha256 of the content, "link:" and the target, absent where
	// berth took something away, or "" where the content is not berth's to judge (a
	// download, a generated key).
	Sum string `json:"sum,omitempty"`
	// Attributes are mode and owner as berth set them: "0755 0:0".
	Attributes string `json:"attributes,omitempty"`
	// InPlace: berth set nothing else of it.
	InPlace bool `json:"inPlace,omitempty"`
	// Asked is what was asked for where the content does not tell: the version of a
	// download, the names in a certificate.
	Asked string `json:"asked,omitempty"`
	// Print is the fingerprint of a download.
	Print string `json:"print,omitempty"`
	// Dir is a directory. Parent: one that was made on the way to another name, so
	// that nobody asked for its mode.
	Dir    bool `json:"dir,omitempty"`
	Parent bool `json:"parent,omitempty"`
	// Original is the key of the sidecar of what was there before, if anything.
	Original string `json:"original,omitempty"`
	// Seed content is its owner's once it is there.
	Seed bool `json:"seed,omitempty"`
	// Adopted: it was as wanted when berth came, or when the ledger was lost. Whose
	// it is can't be said, so it is never deleted.
	Adopted bool `json:"adopted,omitempty"`
}

// ledger is what berth has put on this machine, by path.
type ledger struct {
	Version int              `json:"version"`
	Entries map[string]entry `json:"entries"`
}

// loadLedger reads the ledger. A lost or torn one is rebuilt from the sidecars
// of the originals: what they name was berth's; nothing else is claimed. One that
// a newer berth wrote is not lost.
func loadLedger(h host.FS) (*ledger, error) {
	led := &ledger{}
	data, ok, err := readFile(h, ledgerPath)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	if ok && json.Unmarshal(data, led) == nil && led.Version == 1 && led.Entries != nil {
		return led, nil
	}
	if led.Version > 1 {
		return nil, &LedgerVersionError{Version: led.Version}
	}
	led = &ledger{Version: 1, Entries: map[string]entry{}}
	return led, rebuild(h, led)
}

func rebuild(h host.FS, led *ledger) error {
	names, err := h.ReadDir(originalsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rebuild ledger: %w", err)
	}
	for _, name := range names {
		side, err := readSidecar(h, name)
		if err != nil || side.Path == "" {
			continue
		}
		if led.Entries[side.Path], err = rebuilt(h, name, &side); err != nil {
			return fmt.Errorf("rebuild ledger: %w", err)
		}
	}
	return nil
}

// rebuilt is the entry of a name whose original is there. What berth made of it
// is not known any more, but that it took it away shows.
func rebuilt(h host.FS, original string, side *sidecar) (entry, error) {
	e := entry{Original: original, InPlace: side.inPlace(), Dir: side.Type == originalDirectory}
	if side.Owner != "" {
		e.Owners = []desired.Owner{side.Owner}
	}
	info, err := lstat(h, side.Path)
	if info == nil && !e.InPlace {
		e.Sum = absent
	}
	return e, err
}

func (l *ledger) save(h host.FS) error {
	data, err := l.print()
	if err != nil {
		return err
	}
	return writeLedger(h, data)
}

func (l *ledger) print() ([]byte, error) {
	data, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return nil, fmt.Errorf("print ledger: %w", err)
	}
	return append(data, '\n'), nil
}

func writeLedger(h host.FS, data []byte) error {
	if err := host.WriteFile(h, ledgerPath, data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// claim enters a put for an owner.
func (l *ledger) claim(p *put, owner desired.Owner, original string, seed bool) {
	e := l.Entries[p.path]
	if len(p.from) > 0 {
		e.Owners = nil
	}
	e.join(owner)
	e.Adopted = e.Adopted && e.adoptedAs(p)
	if e.Original == "" {
		e.Original = original
	}
	e.Sum, e.Dir, e.Seed = p.sum(), p.kind == putDir, seed
	if p.generated {
		e.Sum = ""
	}
	e.Asked, e.Parent = p.asked, p.parent
	e.Attributes, e.InPlace = p.attributes(), p.inPlace() && e.Original != ""
	l.Entries[p.path] = e
}

// note keeps the fingerprint of a claimed download.
func (l *ledger) note(path, mark string) {
	e := l.Entries[path]
	e.Print = mark
	l.Entries[path] = e
}

// foreign says whether what a put replaces is nobody's here, or berth's but for
// the content.
func (l *ledger) foreign(p *put) bool {
	e, ok := l.Entries[p.path]
	return !ok || e.InPlace && !p.inPlace() || e.Adopted && !e.adoptedAs(p)
}

// made says whether berth put the path there.
func (l *ledger) made(path string) bool {
	e, ok := l.Entries[path]
	return ok && !e.InPlace && !e.Adopted
}

// ours says whether the path is in the ledger at all.
func (l *ledger) ours(path string) bool {
	_, ok := l.Entries[path]
	return ok
}

// LedgerVersionError is a ledger that a newer berth wrote. It says what is
// berth's on this machine, so nothing is done without it.
type LedgerVersionError struct{ Version int }

// Error names the file and its version.
func (e *LedgerVersionError) Error() string {
	return fmt.Sprintf("%s has version %d, and this berth knows version 1", ledgerPath, e.Version)
}

// Hint says which berth to use.
func (e *LedgerVersionError) Hint() string {
	return "A newer berth has changed this machine: use that version or a later one."
}
