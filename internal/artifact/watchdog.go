package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// floorRate is the least that a source must send, in bytes per second, over the
// time that Options.Stall gives: less counts as nothing.
const floorRate = 512

// errTimeOver ends the last look at a source: the budget is used up.
var errTimeOver = errors.New("the time for this download is over")

// stallError is a source that sent next to nothing.
type stallError struct {
	bytes int
	span  time.Duration
}

// Error says how little came.
func (e *stallError) Error() string {
	if e.bytes == 0 {
		return fmt.Sprintf("no data for %s", e.span)
	}
	return fmt.Sprintf("only %d bytes in %s", e.bytes, e.span)
}

// watchdog gives up a source that sends nothing, or next to nothing, while it is
// waited for. The time in which berth is busy itself, with decompression or the
// disk, does not count, neither here nor for the budget.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	tries  *tries

	mu    sync.Mutex
	timer *time.Timer
	// span is how long the present look takes in all, left what is left of it when
	// nobody waits.
	span, left time.Duration
	// since is when the present wait began; zero while nobody waits.
	since time.Time
	bytes int
}

// watch begins a watch over a source: the first look is over at the end of the
// budget at the latest.
func watch(ctx context.Context, t *tries) *watchdog {
	w := &watchdog{tries: t, span: min(t.left(), t.opt.Stall)}
	w.left = w.span
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.span, w.bark)
	w.timer.Stop()
	return w
}

// begin says that the source is waited for.
func (w *watchdog) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
	w.timer.Reset(w.left)
}

// end says that the wait is over, and what it brought.
func (w *watchdog) end(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	waited := time.Since(w.since)
	w.since = time.Time{}
	w.bytes += n
	w.tries.waited(waited)
	if w.left -= waited; w.left <= 0 {
		w.look()
	}
}

// bark is the end of a look in the middle of a wait.
func (w *watchdog) bark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || time.Since(w.since) < w.left {
		return // of a wait that is over
	}
	w.look()
	if w.ctx.Err() == nil {
		w.tries.waited(time.Since(w.since))
		w.since = time.Now()
		w.timer.Reset(w.left)
	}
}

// look looks at a span and begins the next one.
func (w *watchdog) look() {
	switch enough := int(w.span.Seconds() * floorRate); {
	case w.bytes == 0 && w.span < w.tries.opt.Stall:
		w.cancel(fmt.Errorf("%w, and %w", &stallError{0, w.span.Round(time.Millisecond)}, errTimeOver))
	case w.bytes < enough:
		w.cancel(&stallError{w.bytes, w.span})
	}
	w.bytes, w.span = 0, w.tries.opt.Stall
	w.left = w.span
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.since = time.Time{}
	w.cancel(nil)
}

// clean takes the URL out of an error, since its query may be a secret, and puts
// the reason for which the source was given up in.
func (w *watchdog) clean(err error) error { return clean(w.ctx, err) }

// fed tells a watchdog when it is read and what comes.
type fed struct {
	io.ReadCloser
	watchdog *watchdog
}

// Read implements io.Reader.
func (f *fed) Read(p []byte) (int, error) {
	f.watchdog.begin()
	n, err := f.ReadCloser.Read(p)
	f.watchdog.end(n)
	return n, err
}
