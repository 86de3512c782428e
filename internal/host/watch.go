package host

import (
	"context"
	"sync"
)

// Watcher tells of changes as they happen.
type Watcher interface {
	// Watch tells of changes from the moment it returns until ctx ends; then the
	// channel is closed. What the reader has not taken yet is told once, however
	// often it changes. Under another root directory there are no units to watch:
	// ErrNoSystemd.
	Watch(ctx context.Context, w Watched) (<-chan Event, error)
}

// Watched is what somebody wants to hear of.
type Watched struct {
	// Names are paths, which need not exist, nor their parents: they are told when
	// they come, change in content or attributes, are replaced or go, and when a
	// directory or link on the way does. Of a directory its entries count as its
	// content. A mount over a name is not noticed, nor what the kernel itself writes.
	Names []string
	// Units are told when their state changes, and at each reload of systemd.
	Units []string
}

// Event is a change.
type Event struct {
	// Name or Unit is one of those watched, as it was given.
	Name, Unit string
	// Missed: some changes were not seen, of whatever it may be. Look at everything.
	Missed bool
}

// Events are those that wait for a reader. Post never waits.
type Events struct {
	mu      sync.Mutex
	waiting []Event
	known   map[Event]bool
	wake    chan struct{}
}

// NewEvents has none yet.
func NewEvents() *Events {
	return &Events{known: map[Event]bool{}, wake: make(chan struct{}, 1)}
}

// Post adds an event, unless it waits already.
func (q *Events) Post(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[e] {
		return
	}
	q.known[e] = true
	q.waiting = append(q.waiting, e)
	select {
	case q.wake <- struct{}{}:
	default: // the reader knows
	}
}

// Deliver hands events over in their order until ctx ends; then the channel is
// closed.
func (q *Events) Deliver(ctx context.Context) <-chan Event {
	out := make(chan Event)
	go func() {
		defer close(out)
		for {
			select {
			case <-q.wake:
			case <-ctx.Done():
				return
			}
			for e, ok := q.take(); ok; e, ok = q.take() {
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

func (q *Events) take() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return Event{}, false
	}
	e := q.waiting[0]
	q.waiting = q.waiting[1:]
	delete(q.known, e)
	return e, true
}
