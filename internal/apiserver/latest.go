package apiserver

import (
	"context"
	"iter"
	"sync"
)

// Latest is the newest state of one object, shared by all who go by it. What
// Follow sees is set here. The zero value knows nothing yet.
type Latest[T any] struct {
	mu      sync.Mutex
	known   bool
	value   *T
	changed chan struct{}
}

// Set says how the object is now; nil where there is none. It belongs to the
// readers from then on and must not be changed.
func (l *Latest[T]) Set(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value, l.known = v, true
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Get returns the object, or nil where there is none; known is false until it
// was looked for.
func (l *Latest[T]) Get() (v *T, known bool) {
	v, known, _ = l.look()
	return v, known
}

// Each yields how the object is, as soon as that is known, and then how it has
// become, until ctx ends. Who is slow sees the newest state, not each.
func (l *Latest[T]) Each(ctx context.Context) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for ctx.Err() == nil {
			v, known, changed := l.look()
			if known && !yield(v) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

func (l *Latest[T]) look() (*T, bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.value, l.known, l.changed
}
