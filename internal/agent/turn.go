package agent

import (
	"context"
	"log/slog"
	"sync"

	"github.com/berth-dev/berth/internal/agent/rollout"
)

// turn is this machine's turn among those of its pool. It implements
// reconcile.Turns: the wait for it holds up nothing else.
type turn struct {
	turns *rollout.Turns
	log   *slog.Logger
	// mine is called when the turn has come, and when it was lost: who still wants it waits anew.
	mine func()

	mu      sync.Mutex
	waiting bool
	// held ends when the turn is over; nil while it has not come.
	held context.Context
	// end ends the wait or what keeps the turn; nil when there is nothing to give on.
	end context.CancelFunc
}

// Acquire is the turn if it has come, and else waits for it.
func (t *turn) Acquire(ctx context.Context) (held context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil && !t.waiting {
		t.waiting = true
		var own context.Context
		own, t.end = context.WithCancel(ctx)
		go t.take(own)
	}
	return t.held
}

func (t *turn) take(ctx context.Context) {
	if err := t.turns.Take(ctx); err != nil {
		return // ctx has ended: nothing else ends the wait
	}
	held, over := context.WithCancel(ctx)
	defer over()
	if !t.set(ctx, held) {
		return
	}
	t.mine()
	if err := t.turns.Keep(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn("the turn is over", "error", err)
	}
	if t.set(ctx, nil) {
		t.mine()
	}
}

// set notes how it stands, unless the turn was given on meanwhile.
func (t *turn) set(ctx, held context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	t.held, t.waiting = held, held != nil
	return true
}

// Release gives the turn on, or the wait for it up. It may be called again until it
// has; what this process did not ask for it leaves alone.
func (t *turn) Release(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil {
		return nil
	}
	t.end()
	t.held, t.waiting = nil, false
	if err := t.turns.Release(ctx); err != nil {
		return err
	}
	t.end = nil
	return nil
}
