package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// EarlyProbe is a probe that began before anybody knew that it is needed. It is for one
// plan. The zero value has begun nothing, nil begins nothing.
type EarlyProbe struct {
	mu    sync.Mutex
	begun *begunProbe
}

// begunProbe is one try, whose outcome is there when done is closed.
type begunProbe struct {
	check *desired.Check
	until time.Time
	done  chan struct{}
	// connections has the connection of the try, which is good where it went well.
	connections Connections
	good        bool
}

// Begin tries once whether the server of a check can be reached and trusted. A try that
// does not go well tells nobody: who needs the check then probes as if nothing was.
func (e *EarlyProbe) Begin(ctx context.Context, c *desired.Check) {
	if e == nil {
		return
	}
	b := &begunProbe{check: c, until: time.Now().Add(fresh), done: make(chan struct{})}
	e.mu.Lock()
	e.begun = b
	e.mu.Unlock()
	go func() {
		defer close(b.done)
		ctx, cancel := context.WithTimeout(ctx, min(fresh, c.Timeout))
		defer cancel()
		_ = converge.Safely(func() error {
			p, err := newProbe(c, &b.connections)
			b.good = err == nil && p.try(ctx) == nil
			return nil
		})
	}()
}

// answers says whether what began early was about this server, and went well: then its
// connection is handed on. It waits for the end of the try.
func (e *EarlyProbe) answers(ctx context.Context, c *desired.Check, to *Connections) bool {
	b := e.take(c)
	if b == nil {
		return false
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return false
	}
	if b.good {
		host := hostPort(c)
		to.give(host, []byte(c.CA), b.connections.take(host, []byte(c.CA)))
	}
	return b.good
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
