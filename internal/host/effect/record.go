package effect

import (
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/host"
)

// Recorded is an effect that took place, and its error.
type Recorded struct {
	Effect
	Err error
}

// Recorder is a host that writes down its effects.
type Recorder struct {
	*decorated
	after func(Effect)
	mu    sync.Mutex
	n     int
	log   []Recorded
}

// Record decorates a host.
func Record(h host.Host) *Recorder { return After(h, func(Effect) {}) }

// After decorates a host: each effect that has taken place, or failed, is told before its
// caller learns of it.
func After(h host.Host, told func(Effect)) *Recorder {
	r := &Recorder{after: told}
	r.decorated = &decorated{inner: h, around: r.around, before: func() error { return nil }}
	return r
}

// Effects are those that have ended, in the order of their numbers.
func (r *Recorder) Effects() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.log)
	slices.SortFunc(out, func(a, b Recorded) int { return a.N - b.N })
	return out
}

// Lines are the effects as text, without their numbers: for comparing runs.
func (r *Recorder) Lines() []string {
	var out []string
	for _, e := range r.Effects() {
		e.N = 0
		line := e.String()[len("0 "):]
		if e.Err != nil {
			line += ": " + e.Err.Error()
		}
		out = append(out, line)
	}
	return out
}

// Forget empties the record.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = nil
}

func (r *Recorder) around(e Effect, do func() error) error {
	r.mu.Lock()
	r.n++
	e.N = r.n
	r.mu.Unlock()
	err := do()
	r.after(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, Recorded{e, err})
	return err
}
