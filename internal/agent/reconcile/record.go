package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// Where is what the agent remembers of the documents of a source and no machine shows.
const (
	RecordPath    = paths.StateDir + "/agent.json"
	RecordPathAKS = paths.StateDir + "/agent-aks.json"
	// RecordPathNode is of a NodeConfig in a file.
	RecordPathNode = paths.StateDir + "/agent-node.json"
)

// record is small and written whole. Lost or of another time, it costs a delay that
// begins anew, one more try of what was taken back, and that a turn is kept or given on that
// should not have been; what is in force it does not say.
type record struct {
	// Seen is the document that came last, and SeenAt when: its delay counts from
	// then, restarts or not.
	Seen   string    `json:"seen,omitempty"`
	SeenAt time.Time `json:"seenAt,omitzero"`
	// Reverted is a document that broke what ran, and was taken back.
	Reverted string `json:"reverted,omitempty"`
	// Why is what was told of that.
	Why string `json:"why,omitempty"`
	// Checksum is what the document of Sum is called in the cluster.
	Sum      string `json:"sum,omitempty"`
	Checksum string `json:"checksum,omitempty"`
	// Owner is whose the documents are: noted before anything of one is on the machine. ""
	// is the source's first one, where an older berth has written it, or none yet.
	Owner desired.Owner `json:"owner,omitempty"`
	// Half: a document has changed the machine and is neither in force nor taken back.
	Half bool `json:"half,omitempty"`
	// Inherited: what the former agent left is taken over, or nothing can be.
	Inherited bool `json:"inherited,omitempty"`
}

// loadRecord reads it; what can't be understood is lost.
func loadRecord(h host.FS, at string) (record, error) {
	text, err := h.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read what the agent remembers: %w", err)
	}
	var r record
	if json.Unmarshal(text, &r) != nil {
		return record{}, nil
	}
	return r, nil
}

func (r record) save(h host.FS, at string) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = host.PrivateDir(h, paths.StateDir)
	}
	if err == nil {
		err = host.WriteFile(h, at, append(text, '\n'), host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("write what the agent remembers: %w", err)
	}
	return nil
}

// change writes the record where it differs from what is on the disk.
func (r *Reconciler) change(next record) error {
	if next == r.saved {
		r.record = next
		return nil
	}
	if err := next.save(r.o.Host, r.o.Record); err != nil {
		return err
	}
	r.record, r.saved = next, next
	return nil
}

// see notes when a document came. It is written with what comes of it: a document that
// does not wait is not held up by it.
func (r *Reconciler) see(d *Document) {
	next, now := r.record, r.o.Host.Now()
	if next.Seen != d.Checksum || next.SeenAt.After(now) { // the clock was ahead, once
		next.Seen, next.SeenAt = d.Checksum, now
	}
	if next.Reverted != d.Checksum {
		next = next.forgiven()
	}
	r.record = next
}

// forgiven is a record of which no document was taken back.
func (r record) forgiven() record {
	r.Reverted, r.Why = "", ""
	return r
}
