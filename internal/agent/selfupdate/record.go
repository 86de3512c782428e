package selfupdate

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// MemoryPath is where is what the agent remembers of its updates and no machine shows.
const MemoryPath = paths.StateDir + "/agent-update.json"

// record names documents by their checksums. Lost, it costs one more try.
type record struct {
	// Tried is a document whose agent is put in place, and Boot when; Started says that
	// all of it was. One that a power cut took back, or that was cut off before it was
	// started, has not failed. Again says that this was so before: the next one counts.
	Tried string `json:"tried,omitempty"`
	ledger.Boot
	Started bool `json:"started,omitempty"`
	Again   bool `json:"again,omitempty"`
	// FellBack is a document whose agent did not prove itself, KeptOut one whose agent
	// is not berth.
	FellBack string `json:"fellBack,omitempty"`
	KeptOut  string `json:"keptOut,omitempty"`
}

func load(h host.FS) (record, error) {
	var m record
	text, ok, err := ledger.ReadFile(h, MemoryPath)
	if err != nil {
		return m, fmt.Errorf("read what is known of the agent's update: %w", err)
	}
	if ok && json.Unmarshal(text, &m) != nil {
		return record{}, nil
	}
	return m, nil
}

func (m record) save(h host.FS) error {
	if was, err := load(h); err == nil && was == m {
		return nil
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = host.PrivateDir(h, paths.StateDir)
	}
	if err == nil {
		err = host.WriteFile(h, MemoryPath, append(text, '\n'), host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("write what is known of the agent's update: %w", err)
	}
	return nil
}
