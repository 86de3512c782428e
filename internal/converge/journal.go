package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// journal is what a running apply owes, ids and paths only. It tells the next
// run that the last one was cut off and where temporary names may be left.
type journal struct {
	Owner desired.Owner `json:"owner"`
	// Actions are the ids still owed when the apply began.
	Actions []desired.ID `json:"actions"`
	// Temps are paths whose temporary files may exist.
	Temps []string `json:"temps"`
	// Dirs are directories that did not exist when the apply began.
	Dirs []string `json:"dirs"`
}

// loadJournal returns nil where no apply was cut off. A torn journal is an empty
// one: it costs leftovers, never correctness.
func loadJournal(h host.FS) (*journal, error) {
	data, ok, err := readFile(h, journalPath)
	if err != nil || !ok {
		return nil, err
	}
	j := &journal{}
	if json.Unmarshal(data, j) != nil {
		return &journal{}, nil
	}
	return j, j.keepClaimed(h)
}

// keepClaimed strikes the directories that the ledger has: their commit had
// begun, and a program may watch them, empty as they are.
func (j *journal) keepClaimed(h host.FS) error {
	led, err := loadLedger(h)
	if err != nil {
		return err
	}
	j.Dirs = slices.DeleteFunc(j.Dirs, led.ours)
	return nil
}

func (j *journal) save(h host.FS) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := host.WriteFile(h, journalPath, data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// clear removes what an apply left that never came to commit: temporary files
// and directories that are still empty.
func (j *journal) clear(h host.FS) error {
	for _, p := range j.Temps {
		if err := removeIfThere(h, host.TempName(p)); err != nil {
			return fmt.Errorf("clear leftover: %w", err)
		}
	}
	for _, d := range slices.Backward(j.Dirs) {
		names, err := h.ReadDir(d)
		if err != nil || len(names) > 0 {
			continue
		}
		if err := removeIfThere(h, d); err != nil {
			return fmt.Errorf("clear leftover: %w", err)
		}
	}
	return nil
}

func (j *journal) drop(h host.FS) error {
	if err := removeIfThere(h, journalPath); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return h.SyncDir(stateDir)
}

func removeIfThere(h host.FS, p string) error {
	if err := h.Remove(p); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// begin makes the journal durable before anything else is written.
func (j *journal) begin(h host.FS) error {
	for _, dir := range []string{stateDir, originalsDir, stampDir} {
		if err := host.PrivateDir(h, dir); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	return j.save(h)
}
