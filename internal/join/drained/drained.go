// Package drained remembers that berth took a Node out of the scheduler's sight, so that a
// run which comes after one that was cut off gives it back, and people can be told.
package drained

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// notePath is there exactly as long as a Node is cordoned by berth for a change.
const notePath = paths.StateDir + "/drained.json"

// Note is a Node that berth has cordoned.
type Note struct {
	Node string `json:"node"`
	// UID is the Node's: one that another cluster has, or that was registered anew, has
	// another. "" where it is not known.
	UID string `json:"uid,omitempty"`
	// Since is when it was cordoned.
	Since time.Time `json:"since,omitzero"`
	// Broken: the change failed and was not taken back, so that the Node takes no pods
	// until a run has mended it.
	Broken bool `json:"broken,omitempty"`
}

// Load reads the note; nil where there is none. One that says nothing was damaged by
// somebody else and names no Node.
func Load(h host.FS) (*Note, error) {
	text, ok, err := ledger.ReadFile(h, notePath)
	if err != nil {
		return nil, fmt.Errorf("look for a drain: %w", err)
	}
	if !ok {
		return nil, nil
	}
	n := &Note{}
	if err := json.Unmarshal(text, n); err != nil {
		return &Note{}, nil //nolint:nilerr // there is nothing to be had of it
	}
	return n, nil
}

// Save makes the note durable.
func (n *Note) Save(h host.Host) error {
	text, err := json.Marshal(n)
	if err == nil {
		err = host.WriteFile(h, notePath, append(text, '\n'), host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("remember the drain: %w", err)
	}
	return nil
}

// Forget removes it, with what was to end the drain.
func Forget(ctx context.Context, h host.Host) error {
	if err := Disarm(ctx, h); err != nil {
		return err
	}
	return ledger.RemoveIfThere(h, notePath)
}

// Damaged says that nobody knows which Node it is of.
func (n *Note) Damaged() bool { return n.Node == "" }

// String says what is the matter.
func (n *Note) String() string {
	if n.Damaged() {
		return notePath + " is damaged: nobody knows whether berth cordoned this machine's Node"
	}
	at := ""
	if !n.Since.IsZero() {
		at = " at " + n.Since.UTC().Format(time.RFC3339)
	}
	why := "; the run that did so has not ended"
	if n.Broken {
		why = "; it takes no pods until a run has mended it"
	}
	return "berth cordoned node " + n.Node + at + " for another kubelet" + why
}

// Remedy says what ends it.
func (n *Note) Remedy() string {
	if n.Damaged() {
		return "look at the Node (kubectl get nodes), and uncordon it where nobody else cordoned it; the next run of berth removes the file"
	}
	return "run the same command again, which has the node take pods again once it stands; or kubectl uncordon " + n.Node
}
