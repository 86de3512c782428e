package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// notePath is there exactly as long as something is on trial.
const notePath = paths.StateDir + "/trial.json"

// Note is a change that is not confirmed: what is tried, and what was before.
type Note struct {
	Owner desired.Owner `json:"owner"`
	// Sum is the sha256 of the document on trial.
	Sum string `json:"sum"`
	// Boot is the one in which it is tried: in another one it counts as not confirmed.
	ledger.Boot
	// Began is when the first change was made.
	Began time.Time `json:"began"`
	// Units ran before and are started anew.
	Units []string `json:"units,omitempty"`
	// Before is how the node stood.
	Before Standing `json:"before"`
	// Until is when a person has to have confirmed it; zero where nobody has to.
	Until time.Time `json:"until,omitzero"`
	// End is Until as how long the machine is up by then, which no clock changes; zero
	// where that is not known.
	End time.Duration `json:"end,omitzero"`
	// Waiting: all has been verified that can be, and a person's word is missing.
	Waiting bool `json:"waiting,omitempty"`
}

// Standing is how a node stands, as far as it can be seen. What can't be seen is
// false, and is asked of nobody.
type Standing struct {
	// Healthy: kubelet calls itself healthy.
	Healthy bool `json:"healthy"`
	// Ready: the API server says that the Node is Ready.
	Ready bool `json:"ready"`
}

// TornError is a note that says nothing: something was on trial, and nobody knows what.
type TornError struct{ Err error }

// Error says where it is.
func (e *TornError) Error() string { return fmt.Sprintf("read %s: %v", notePath, e.Err) }

// Unwrap returns why it can't be read.
func (e *TornError) Unwrap() error { return e.Err }

// Begun is a note of a change that is tried in the present boot.
func Begun(ctx context.Context, h host.Host) (*Note, error) {
	boot, err := ledger.PresentBoot(ctx, h)
	if err != nil {
		return nil, err
	}
	return &Note{Boot: boot, Began: h.Now()}, nil
}

// Load reads the note; nil where nothing is on trial. The note is written whole: one
// that says nothing was damaged by somebody else, and is a *TornError.
func Load(h host.FS) (*Note, error) {
	data, ok, err := ledger.ReadFile(h, notePath)
	if err != nil || !ok {
		return nil, err
	}
	n := &Note{}
	if err := json.Unmarshal(data, n); err != nil {
		return nil, &TornError{err}
	}
	if n.Owner == "" {
		return nil, &TornError{errors.New("it names no contract")}
	}
	return n, nil
}

// Left is how long a person has, to the second; ok is false where that can't be said.
func (n *Note) Left(h host.FS) (left time.Duration, ok bool) {
	up, err := host.Uptime(h)
	if err != nil || n.End == 0 {
		return 0, false
	}
	return max(n.End-up, 0).Round(time.Second), true
}

// Deadline says when a person has to have confirmed it: within how long, or until when
// where only the clock tells.
func (n *Note) Deadline(h host.FS) string {
	if left, ok := n.Left(h); ok {
		return "within " + left.String()
	}
	return "until " + n.Until.Format(time.RFC3339)
}

// Save makes the note durable.
func (n *Note) Save(h host.FS) error {
	slices.Sort(n.Units)
	n.Units = slices.Compact(n.Units)
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note the trial: %w", err)
	}
	if err := host.PrivateDir(h, paths.StateDir); err != nil {
		return fmt.Errorf("note the trial: %w", err)
	}
	if err := host.WriteFile(h, notePath, append(data, '\n'), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("note the trial: %w", err)
	}
	return nil
}
