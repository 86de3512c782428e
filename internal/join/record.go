package join

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// recordPath says that a run has begun to take a node away, so that the next one goes
// on where nothing tells any more what the machine was.
const recordPath = paths.StateDir + "/leaving.json"

// record is what is remembered of a run.
type record struct {
	// Node is what the machine was registered as.
	Node string `json:"node,omitempty"`
	// Cordoned: berth took the Node out of the scheduler's sight.
	Cordoned bool `json:"cordoned,omitempty"`
	// Done: only berth's own state is left.
	Done bool `json:"done,omitempty"`
}

// interrupted is the run that was cut off; nil where none was, or where the machine has
// been made a node again since.
func (l *leave) interrupted(ctx context.Context) (*record, error) {
	r, err := unfinished(l.Host, l.led)
	if r == nil || err != nil {
		return nil, err
	}
	l.node, l.cordoned, l.cutOff = r.Node, r.Cordoned, true
	if l.running(ctx, kubelet.Unit) && !l.Force {
		return nil, nil
	}
	return r, nil
}

// unfinished is what a run left behind that has not ended; nil for none. One that had
// only berth's state to remove has ended where that names something again.
func unfinished(h host.FS, led *ledger.Ledger) (*record, error) {
	text, ok, err := ledger.ReadFile(h, recordPath)
	if err != nil {
		return nil, fmt.Errorf("look for a run that was cut off: %w", err)
	}
	if !ok {
		return nil, nil
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, nil // it was cut off before it began
	}
	if r.Done && (onMachine(led) > 0 || led.Owed != nil) {
		return nil, nil
	}
	return r, nil
}

func (l *leave) remember(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("remember this run: %w", err)
	}
	if err := host.WriteFile(l.Host, recordPath, append(text, '\n'), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("remember this run: %w", err)
	}
	return nil
}
