package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// EarlyProbe is a probe that began before anybody knew that it is needed. It is for one
// plan. The zero value has begun nothing, and so has nil.
type EarlyProbe struct {
	mu    sync.Mutex
	begun *begunProbe
}

// begunProbe is one try, whose outcome is there when done is closed.
type begunProbe struct {
	check *desired.Check
	until time.Time
	done  chan struct{}
	// probe made the try; nil where it could not be made.
	probe *probe
	good  bool
	// trusted is closed when the server is trusted, or the try has ended; connected says which.
	trusted   chan struct{}
	connected bool
	// next are those that may take the connection.
	next sync.WaitGroup
}

// Begin tries once whether the server of a check can be reached and trusted. A try that
// fails tells nobody: it is the first one of the probe of who needs the check. As soon as
// the server is trusted it calls next, before it has answered and anybody has the answer: next
// may take the connection, and must not wait. Where a try of this server began before, it goes
// on with that one.
func (e *EarlyProbe) Begin(ctx context.Context, c *desired.Check, next func(*Connections)) {
	b := e.take(c)
	if b == nil {
		b = &begunProbe{check: c, until: time.Now().Add(fresh), done: make(chan struct{}), trusted: make(chan struct{})}
		go func() {
			defer close(b.done)
			_ = converge.Safely(func() error { b.try(ctx); return nil })
		}()
	}
	b.next.Add(1)
	e.mu.Lock()
	e.begun = b
	e.mu.Unlock()
	go func() {
		defer b.next.Done()
		if <-b.trusted; b.connected {
			_ = converge.Safely(func() error { next(b.probe.connections); return nil })
		}
	}()
}

// try is the one try.
func (b *begunProbe) try(ctx context.Context) {
	var once sync.Once
	trust := func(connected bool) { once.Do(func() { b.connected = connected; close(b.trusted) }) }
	defer trust(false)
	ctx, cancel := context.WithTimeout(ctx, min(fresh, b.check.Timeout))
	defer cancel()
	p, err := newProbe(b.check, &Connections{})
	if err != nil {
		return
	}
	b.probe, p.trusted = p, func() { trust(true) }
	failed := p.try(ctx)
	if p.trusted = nil; failed != nil {
		p.note(ctx, failed)
	}
	b.good = failed == nil
}

// await is the probe that began early about this server, and whether it went well, once
// its try ended; nil where there is none by the end of ctx. Its connection is handed on,
// if nobody has it.
func (e *EarlyProbe) await(ctx context.Context, c *desired.Check, to *Connections) (*probe, bool) {
	b := e.take(c)
	if b == nil {
		return nil, false
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		select {
		case <-b.done: // both happened
		default:
			return nil, false
		}
	}
	b.next.Wait()
	if b.good {
		b.probe.connections.handOn(to)
		return nil, true
	}
	if b.probe != nil {
		b.probe.connections = to
	}
	return b.probe, false
}

// take is what began early about this server and is not old; nil where nothing did.
func (e *EarlyProbe) take(c *desired.Check) *begunProbe {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.begun
	if b == nil || b.check.Host != c.Host || b.check.Port != c.Port || b.check.Address != c.Address || b.check.CA != c.CA || time.Now().After(b.until) {
		return nil
	}
	e.begun = nil
	return b
}
