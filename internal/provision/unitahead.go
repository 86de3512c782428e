package provision

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// freshUnit is for how long what systemd said early counts.
const freshUnit = 2 * time.Second

// UnitAhead is a question about a unit that began before anybody knew that it is needed. It is
// for one plan. The zero value has asked nothing.
type UnitAhead struct {
	mu    sync.Mutex
	asked *earlyUnit
}

// earlyUnit is the question and its answer, which is there when done is closed.
type earlyUnit struct {
	name  string
	until time.Time
	done  chan struct{}
	st    host.UnitStatus
	err   error
}

// Ask begins to ask.
func (a *UnitAhead) Ask(ctx context.Context, h host.Host, name string) {
	e := &earlyUnit{name: name, until: time.Now().Add(freshUnit), done: make(chan struct{})}
	a.mu.Lock()
	a.asked = e
	a.mu.Unlock()
	go func() {
		defer close(e.done)
		e.err = converge.Safely(func() (err error) { e.st, err = h.Unit(ctx, name); return err })
	}()
}

// Take is the answer, once, and soon after the question; ok is false where there is none: then
// whoever asks systemd has the error.
func (a *UnitAhead) Take(ctx context.Context, name string) (st host.UnitStatus, ok bool) {
	a.mu.Lock()
	e := a.asked
	if e == nil || e.name != name || time.Now().After(e.until) {
		a.mu.Unlock()
		return st, false
	}
	a.asked = nil
	a.mu.Unlock()
	select {
	case <-e.done:
		return e.st, e.err == nil
	case <-ctx.Done():
		return st, false
	}
}
