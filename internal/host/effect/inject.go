package effect

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/berth-dev/berth/internal/host"
)

// ErrStopped is the error of every call after a stop, readings included: to the
// caller it is as if the process had ended.
var ErrStopped = errors.New("the process has stopped here")

// Kind is what happens at a fault.
type Kind int

const (
	// Fail means that the effect does not happen and its error is Fault.Err. Of a Write the
	// first half happens.
	Fail Kind = iota
	// StopBefore means that the effect and everything after it does not happen.
	StopBefore
	// StopAfter means that the effect happens, but nobody learns of it; nothing after it
	// happens.
	StopAfter
)

// Fault is a fault at one effect.
type Fault struct {
	// At is the number of the effect, from 1.
	At   int
	Kind Kind
	// Err is the error of Fail: it is wrapped in a *fs.PathError.
	Err error
	// Times is for how many effects in a row Fail holds; 0 means 1, negative for
	// ever.
	Times int
}

func (f Fault) hits(n int) bool {
	switch {
	case n < f.At:
		return false
	case f.Kind != Fail || f.Times < 0:
		return true
	}
	return n < f.At+max(f.Times, 1)
}

// injected marks the error of Fail: a Write that gets it is half done.
type injected struct{ *fs.PathError }

// Unwrap implements errors.Unwrap.
func (e *injected) Unwrap() error { return e.PathError }

// Plan is the faults of one run. Without any, effects are counted.
type Plan []Fault

// Injector is a host with faults.
type Injector struct {
	*decorated
	plan Plan

	mu      sync.Mutex
	n       int
	hit     *Effect
	stopped bool
}

// Inject decorates a host.
func Inject(h host.Host, p Plan) *Injector {
	i := &Injector{plan: p}
	i.decorated = &decorated{inner: h, around: i.around, before: i.alive}
	return i
}

// Count is how many effects began, a failed or stopped one included.
func (i *Injector) Count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n
}

// Hit is the first effect at which a fault took place; nil if none did.
func (i *Injector) Hit() *Effect {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hit
}

func (i *Injector) alive() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return ErrStopped
	}
	return nil
}

func (i *Injector) around(e Effect, do func() error) error {
	f, err := i.begin(&e)
	switch {
	case err != nil:
		return err
	case f == nil:
		return do()
	case f.Kind == StopAfter:
		_ = do()
		return ErrStopped
	case f.Kind == StopBefore:
		return ErrStopped
	}
	return &injected{&fs.PathError{Op: e.Op, Path: e.Target, Err: f.Err}}
}

// begin numbers an effect and finds its fault.
func (i *Injector) begin(e *Effect) (*Fault, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, ErrStopped
	}
	i.n++
	e.N = i.n
	for _, f := range i.plan {
		if !f.hits(e.N) {
			continue
		}
		if i.hit == nil {
			i.hit = e
		}
		i.stopped = f.Kind != Fail
		return &f, nil
	}
	return nil, nil
}
