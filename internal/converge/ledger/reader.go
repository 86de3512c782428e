package ledger

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"

	"github.com/berth-dev/berth/internal/host"
)

// Reader reads the ledger for a process that stays. The zero value has read
// nothing.
type Reader struct {
	mu sync.Mutex
	// info describes the file that doc was read from, where a change of it would show;
	// text is what doc was read from, or written as.
	info *host.Info
	text []byte
	doc  stored
}

// read is the file; whole is false for one that is lost or torn.
func (r *Reader) read(h host.Host) (d stored, whole bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := Lstat(h, Path)
	if err != nil {
		return d, false, err
	}
	if info != nil && r.info != nil && info.Unchanged(*r.info) {
		return r.doc, true, nil
	}
	r.info = nil
	data, ok, err := ReadFile(h, Path)
	if err != nil || !ok {
		return d, false, err
	}
	if !bytes.Equal(data, r.text) {
		r.doc, r.text = stored{}, nil
		if json.Unmarshal(data, &d) != nil || d.Entries == nil {
			return d, false, nil
		}
		r.doc, r.text = d, data
	}
	if info != nil && info.Settled(h.Now()) {
		r.info = info
	}
	return r.doc, true, nil
}

// wrote notes what the file holds now: to compare it is cheaper than to read it as
// JSON. The ledger goes on to change.
func (r *Reader) wrote(text []byte, d stored) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Entries = maps.Clone(d.Entries)
	if d.Run != nil {
		run := *d.Run
		run.Claims = maps.Clone(run.Claims)
		d.Run = &run
	}
	r.info, r.text, r.doc = nil, text, d
}
