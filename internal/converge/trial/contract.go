// Package trial is what berth remembers of changes that are not confirmed: the
// last good contract of each owner, the note of the change that is on trial, and
// the units that go back to the last good contract where nobody else can.
package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Dir holds the contracts: mode 0700, since they hold secrets.
const Dir = paths.StateDir + "/contracts"

// Contract is what a state was translated from. The engine can't read it.
type Contract struct {
	// Document is the contract as it was handed over.
	Document []byte `json:"document"`
	// Facts are what translation knew of the machine, as JSON: with them it needs
	// neither network nor other sources to come to the same state again.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// Same says whether two contracts ask for the same. Facts do not count: they are
// the machine's.
func (c *Contract) Same(o *Contract) bool {
	return c != nil && o != nil && bytes.Equal(c.Document, o.Document)
}

// Sum identifies the document.
func (c *Contract) Sum() string { return desired.Text(string(c.Document)).Sum() }

func goodPath(o desired.Owner) string  { return Dir + "/" + string(o) }
func triedPath(o desired.Owner) string { return goodPath(o) + ".tried" }

// Good is an owner's last good contract; nil where there is none, or none that can
// be read.
func Good(h host.FS, o desired.Owner) (*Contract, error) { return read(h, goodPath(o)) }

// GoodInfo describes where an owner's last good contract is: it changes with that. The
// zero value is none.
func GoodInfo(h host.FS, o desired.Owner) (host.Info, error) {
	info, err := ledger.Lstat(h, goodPath(o))
	if err != nil || info == nil {
		return host.Info{}, err
	}
	return *info, nil
}

// Tried is the contract that waits for a word; nil where none does.
func Tried(h host.FS, o desired.Owner) (*Contract, error) { return read(h, triedPath(o)) }

func read(h host.FS, p string) (*Contract, error) {
	data, ok, err := ledger.ReadFile(h, p)
	if err != nil {
		return nil, fmt.Errorf("read the kept contract: %w", err)
	}
	c := &Contract{}
	if !ok || json.Unmarshal(data, c) != nil || len(c.Document) == 0 {
		return nil, nil
	}
	return c, nil
}

// Keep makes a contract an owner's last good one. It writes nothing where it is
// that already.
func Keep(h host.FS, o desired.Owner, c *Contract) error { return write(h, goodPath(o), c) }

// KeepTried keeps a contract that waits for a person's word.
func KeepTried(h host.FS, o desired.Owner, c *Contract) error { return write(h, triedPath(o), c) }

// ForgetTried removes the contract of an earlier change that waited for a person's word:
// the word on this one must not make that one good.
func ForgetTried(h host.FS, o desired.Owner) error {
	if err := removeDurably(h, triedPath(o)); err != nil {
		return fmt.Errorf("forget the contract on trial: %w", err)
	}
	return nil
}

func write(h host.FS, p string, c *Contract) error {
	if err := host.PrivateDir(h, Dir); err != nil {
		return fmt.Errorf("keep the contract: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keep the contract: %w", err)
	}
	have, ok, err := ledger.ReadFile(h, p)
	if err != nil {
		return fmt.Errorf("keep the contract: %w", err)
	}
	if ok && bytes.Equal(have, data) {
		return nil
	}
	if err := host.WriteFile(h, p, data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("keep the contract: %w", err)
	}
	return nil
}

// Promote makes the contract that waits for a person's word the last good one. It
// may have been done before.
func Promote(h host.FS, o desired.Owner) error {
	info, err := ledger.Lstat(h, triedPath(o))
	if err != nil || info == nil {
		return err
	}
	if err := h.Rename(triedPath(o), goodPath(o)); err != nil {
		return fmt.Errorf("keep the contract: %w", err)
	}
	return h.SyncDir(Dir)
}

// Forget removes what is kept of an owner that asks for nothing any more.
func Forget(h host.FS, o desired.Owner) error {
	for _, p := range []string{goodPath(o), triedPath(o), credentialPath(o)} {
		if err := removeDurably(h, p); err != nil {
			return fmt.Errorf("forget the contract: %w", err)
		}
	}
	return nil
}

// removeDurably removes a name that may be gone.
func removeDurably(h host.FS, p string) error {
	if info, err := ledger.Lstat(h, p); err != nil || info == nil {
		return err
	}
	if err := h.Remove(p); err != nil {
		return err
	}
	return h.SyncDir(path.Dir(p))
}
